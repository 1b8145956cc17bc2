/**
 * The way to the program: one function that sends a command to `/api` and gives back its reply or a `CallError`.
 *
 * **Invariant**: the key leaves the page only in the Authorization header of this origin.
 */
import type { Command, Reply } from './contract'

/** Why a command got no reply. `message` is a sentence for people. */
export class CallError extends Error {
  constructor(
    readonly kind: 'no-key' | 'key-refused' | 'unreachable' | 'refused',
    message: string,
  ) {
    super(message)
  }
}

export type Call = <C extends Command>(command: C) => Promise<Reply<C>>

/** How long one command may take before the program counts as not answering. */
const PATIENCE_MS = 10_000

export function connect(key: string | null, send: typeof fetch = (...args) => fetch(...args)): Call {
  return async <C extends Command>(command: C): Promise<Reply<C>> => {
    if (!key) throw new CallError('no-key', 'This page has no key yet.')
    let answer: Response
    try {
      answer = await send('/api', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(command),
        cache: 'no-store',
        redirect: 'error',
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
    } catch {
      throw new CallError('unreachable', 'The program does not answer.')
    }
    const body: unknown = await answer.json().catch(() => null)
    if (answer.ok && body !== null) return body as Reply<C>
    if (answer.status === 401 || answer.status === 403) {
      throw new CallError('key-refused', 'The program does not accept the key of this page any more.')
    }
    throw new CallError('refused', sentence(body) ?? `The program answered with status ${answer.status}.`)
  }
}

function sentence(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('error' in body)) return null
  const { error } = body
  if (typeof error !== 'object' || error === null || !('message' in error)) return null
  return typeof error.message === 'string' ? error.message : null
}
