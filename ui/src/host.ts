/**
 * The way to the program, whatever carries it: commands go out and get one reply, messages of the event stream come in.
 * `http.ts` speaks to the endpoint from a browser, `desktop.ts` to the desktop program around the window.
 *
 * **Invariant**: whatever goes wrong on the way becomes a `CallError` whose message is a sentence for people.
 */
import type { Command, Message, ModelRow } from './contract'

/** The replies to the commands that the page sends. */
export interface Replies {
  set_mode: { model: ModelRow }
}

export type Asked = Extract<Command, { command: keyof Replies }>
export type Reply<C extends Asked> = Replies[C['command']]

/** The last message that was heard; the stream can be resumed behind it. */
export interface Position {
  epoch: string
  number: number
}

export interface Host {
  call<C extends Asked>(command: C): Promise<Reply<C>>
  /**
   * Hears the event stream, from behind `after` if that is still known there. Settles when the stream has ended: with a
   * `CallError` if it failed, without one if it was ended by the program or by `stop`.
   */
  watch(after: Position | null, hear: (message: Message) => void, stop: AbortSignal): Promise<void>
}

export type Kind =
  /** This page was never let in, or is not any more. Only `weir open` helps. */
  | 'outside'
  /** Nothing answers. */
  | 'unreachable'
  /** The program said no, and why. */
  | 'refused'

export class CallError extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
  ) {
    super(message)
  }
}

export function asCallError(cause: unknown): CallError {
  return cause instanceof CallError ? cause : new CallError('refused', 'The answer of the program could not be read.')
}

/** As the program writes a position: `EPOCH:NUMBER`. */
export function written({ epoch, number }: Position): string {
  return `${epoch}:${number}`
}
