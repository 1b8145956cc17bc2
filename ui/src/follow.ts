/**
 * Follows the event stream for as long as the page is open: resumes where it was lost, asks for a snapshot where a
 * message is missing, and waits longer from try to try while nothing answers.
 *
 * **Invariant**: there is at most one stream at a time.
 */
import type { Message } from './contract'
import { CallError, asCallError, type Host, type Position } from './host'

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 10_000

export interface Listener {
  /** Where to resume; null asks for a snapshot. */
  position(): Position | null
  /** Takes a message in; false if it does not follow what is known, which then needs a snapshot. */
  hear(message: Message): boolean
  /** The stream was lost, or never came. */
  lost(cause: CallError): void
}

export class Follow {
  readonly #host: Host
  readonly #listener: Listener
  readonly #end = new AbortController()
  #wake: () => void = () => undefined

  constructor(host: Host, listener: Listener) {
    this.#host = host
    this.#listener = listener
  }

  /** Tries at once instead of waiting. */
  again(): void {
    this.#wake()
  }

  end(): void {
    this.#end.abort()
    this.#wake()
  }

  /** Settles when `end` was called. Never throws. */
  async run(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (!this.#end.signal.aborted) {
      const { heard, gap, cause } = await this.#stream()
      if (this.#end.signal.aborted) return
      if (heard) pause = FIRST_PAUSE_MS
      // A gap behind something known is mended by a snapshot; the page need not hear of it.
      if (gap === 'behind') continue
      this.#listener.lost(cause)
      // Time lets nobody in: without a key only `again` helps, after a new ticket.
      await this.#wait(cause.kind === 'outside' ? null : pause)
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
  }

  async #stream(): Promise<{ heard: boolean; gap: 'none' | 'behind' | 'first'; cause: CallError }> {
    const stream = new AbortController()
    const stop = () => stream.abort()
    this.#end.signal.addEventListener('abort', stop)
    const position = this.#listener.position()
    let heard = false
    let gap: 'none' | 'behind' | 'first' = 'none'
    let cause = new CallError('unreachable', 'The program has ended the connection.')
    try {
      await this.#host.watch(
        position,
        (message) => {
          if (stream.signal.aborted) return
          if (this.#listener.hear(message)) {
            heard = true
            return
          }
          gap = heard || position !== null ? 'behind' : 'first'
          cause = new CallError('refused', 'The messages of the program do not follow each other.')
          stop()
        },
        stream.signal,
      )
    } catch (error) {
      cause = asCallError(error)
    }
    this.#end.signal.removeEventListener('abort', stop)
    return { heard, gap, cause }
  }

  #wait(ms: number | null): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === null ? undefined : setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
