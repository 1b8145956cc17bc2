/**
 * The program around the window: the same commands and messages, carried by Tauri. There is no key, since nobody else
 * can speak on this way.
 *
 * **Invariant**: `watch` of the desktop program is pending for as long as its channel may bring messages.
 */
import { Channel, invoke } from '@tauri-apps/api/core'
import type { Message } from './contract'
import { CallError, written, type Asked, type Host, type Position, type Reply } from './host'

/** Whether this page is shown in the desktop program's window. */
export function inDesktop(window: object): boolean {
  return '__TAURI_INTERNALS__' in window
}

export class DesktopHost implements Host {
  async call<C extends Asked>(command: C): Promise<Reply<C>> {
    try {
      return await invoke<Reply<C>>('call', { command })
    } catch (cause) {
      throw told(cause)
    }
  }

  async watch(after: Position | null, hear: (message: Message) => void, stop: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }))
    const channel = new Channel<string>()
    const failed = new Promise<never>((_, reject) => {
      channel.onmessage = (text) => {
        if (stop.aborted) return
        try {
          hear(JSON.parse(text) as Message)
        } catch {
          reject(new CallError('refused', 'A message of the program could not be read.'))
        }
      }
    })
    try {
      const ended = invoke('watch', { onMessage: channel, after: after === null ? null : written(after) })
      await Promise.race([ended, stopped, failed])
    } catch (cause) {
      if (!stop.aborted) throw told(cause)
    } finally {
      channel.onmessage = () => undefined
    }
  }
}

/** The desktop program rejects with a code and a sentence. */
function told(cause: unknown): CallError {
  if (cause instanceof CallError) return cause
  if (typeof cause === 'object' && cause !== null && 'message' in cause && typeof cause.message === 'string') {
    return new CallError('refused', cause.message)
  }
  return new CallError('refused', typeof cause === 'string' && cause !== '' ? cause : 'The program gave no reason.')
}
