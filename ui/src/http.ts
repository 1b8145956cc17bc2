/**
 * The program over HTTP: `POST /api` for commands, `GET /api/events` for the event stream, `POST /api/enter` for a key.
 *
 * **Invariant**: a key leaves the page only in the Authorization header of requests to its own origin.
 */
import type { Message } from './contract'
import { Entry } from './entry'
import { CallError, written, type Asked, type Host, type Position, type Reply } from './host'
import { datas } from './sse'

/** How long one command may take before the program counts as not answering. */
const PATIENCE_MS = 10_000

/** The program sends at least a comment every 15 s; after this long without one the stream is dead. */
const SILENCE_MS = 40_000

type Send = typeof fetch
type Place = Pick<Window, 'location' | 'history' | 'sessionStorage'>

export class HttpHost implements Host {
  readonly #send: Send
  readonly #entry: Entry

  constructor(place: Place, send: Send = (...args) => fetch(...args)) {
    this.#send = send
    this.#entry = new Entry(place, (ticket) => this.#enter(ticket))
    this.#entry.take()
  }

  /** Looks for a new ticket in the address. Whether there was one. */
  takeTicket(): boolean {
    return this.#entry.take()
  }

  async call<C extends Asked>(command: C): Promise<Reply<C>> {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(command) }
    const answer = await this.#ask('/api', request, AbortSignal.timeout(PATIENCE_MS))
    const body: unknown = await answer.json().catch(() => null)
    if (body === null) throw new CallError('refused', 'The answer of the program could not be read.')
    return body as Reply<C>
  }

  async watch(after: Position | null, hear: (message: Message) => void, stop: AbortSignal): Promise<void> {
    if (stop.aborted) return
    const end = new AbortController()
    const over = () => end.abort()
    stop.addEventListener('abort', over)
    let timer: ReturnType<typeof setTimeout> | undefined
    const sign = () => {
      clearTimeout(timer)
      timer = setTimeout(over, SILENCE_MS)
    }
    sign()
    try {
      const path = after === null ? '/api/events' : `/api/events?after=${encodeURIComponent(written(after))}`
      const answer = await this.#ask(path, { method: 'GET' }, end.signal)
      if (!answer.body) throw new CallError('refused', 'The program sent no stream.')
      for await (const data of datas(answer.body, sign)) {
        if (stop.aborted) return
        hear(parse(data))
      }
    } catch (cause) {
      if (stop.aborted) return
      throw cause instanceof CallError ? cause : unreachable()
    } finally {
      clearTimeout(timer)
      stop.removeEventListener('abort', over)
    }
  }

  /** Sends a request with the key of this page; resolves only if the answer says yes. */
  async #ask(path: string, request: RequestInit, signal: AbortSignal): Promise<Response> {
    const key = await this.#entry.key()
    const headers = { ...request.headers, authorization: `Bearer ${key}` }
    const answer = await this.#fetch(path, { ...request, headers, signal })
    if (answer.ok) return answer
    if (answer.status === 401 || answer.status === 403) {
      this.#entry.forget(key)
      throw new CallError('outside', 'The program does not know the key of this page; it may have been started anew.')
    }
    throw new CallError('refused', (await sentence(answer)) ?? `The program answered with status ${answer.status}.`)
  }

  async #enter(ticket: string): Promise<string> {
    const answer = await this.#fetch('/api/enter', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ticket }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    if (!answer.ok) throw new CallError('outside', 'This address was used before or is too old.')
    const body: unknown = await answer.json().catch(() => null)
    if (typeof body === 'object' && body !== null && 'key' in body && typeof body.key === 'string') return body.key
    throw new CallError('outside', 'The program gave this page no key.')
  }

  async #fetch(path: string, request: RequestInit): Promise<Response> {
    try {
      return await this.#send(path, { ...request, cache: 'no-store', redirect: 'error', credentials: 'omit' })
    } catch {
      throw unreachable()
    }
  }
}

const unreachable = () => new CallError('unreachable', 'The program does not answer.')

function parse(data: string): Message {
  try {
    return JSON.parse(data) as Message
  } catch {
    throw new CallError('refused', 'A message of the program could not be read.')
  }
}

async function sentence(answer: Response): Promise<string | null> {
  const body: unknown = await answer.json().catch(() => null)
  if (typeof body !== 'object' || body === null || !('error' in body)) return null
  const { error } = body
  if (typeof error !== 'object' || error === null || !('message' in error)) return null
  return typeof error.message === 'string' ? error.message : null
}
