import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Message } from './contract'
import { CallError } from './host'
import { HttpHost } from './http'

beforeEach(() => {
  sessionStorage.clear()
  history.replaceState(null, '', '/')
})
afterEach(() => vi.useRealTimers())

type Answer = (path: string, request: RequestInit) => Response | Promise<Response>

function host(answer: Answer, key: string | null = 'k') {
  if (key !== null) sessionStorage.setItem('weir.session-key', key)
  const send = vi.fn((path: string, request: RequestInit) => Promise.resolve().then(() => answer(path, request)))
  return { host: new HttpHost(window, send as unknown as typeof fetch), send }
}

const json = (status: number, body: unknown) => () => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })
const set = { command: 'set_mode', model: 'm', mode: 'full' } as const
const never = new AbortController().signal

async function failure(answer: Answer): Promise<CallError> {
  const cause: unknown = await host(answer).host.call(set).catch((error: unknown) => error)
  if (cause instanceof CallError) return cause
  throw new Error('the call did not fail as it should')
}

test('a command is posted with the key, and its reply given back', async () => {
  const { host: program, send } = host(json(200, { model: { model: 'm' } }))
  await expect(program.call(set)).resolves.toEqual({ model: { model: 'm' } })
  const [path, request] = send.mock.calls[0] ?? []
  expect(path).toBe('/api')
  expect(request).toMatchObject({ method: 'POST', body: JSON.stringify(set), redirect: 'error', credentials: 'omit' })
  expect(request?.headers).toMatchObject({ authorization: 'Bearer k', 'content-type': 'application/json' })
})

test('without a key nothing is sent', async () => {
  const { host: program, send } = host(json(200, {}), null)
  await expect(program.call(set)).rejects.toMatchObject({ kind: 'outside' })
  expect(send).not.toHaveBeenCalled()
})

test('a ticket of the address is exchanged before anything else is asked', async () => {
  location.hash = '#ticket=t'
  const { host: program, send } = host((path) => json(200, path === '/api/enter' ? { key: 'fresh' } : { model: {} })(), null)
  await program.call(set)
  expect(send.mock.calls.map(([path]) => path)).toEqual(['/api/enter', '/api'])
  expect(send.mock.calls[0]?.[1]).toMatchObject({ method: 'POST', body: '{"ticket":"t"}' })
  expect(send.mock.calls[1]?.[1].headers).toMatchObject({ authorization: 'Bearer fresh' })
})

test('a used ticket is told apart', async () => {
  location.hash = '#ticket=t'
  const { host: program } = host(json(401, {}), null)
  await expect(program.call(set)).rejects.toMatchObject({ kind: 'outside', message: 'This address was used before or is too old.' })
})

test('a refusal carries the sentence of the program', async () => {
  expect(await failure(json(400, { error: { message: 'No such model.' } }))).toMatchObject({ kind: 'refused', message: 'No such model.' })
  expect((await failure(json(418, '<html>'))).message).toContain('418')
  expect((await failure(json(200, 'not json'))).kind).toBe('refused')
})

test('a key that is not known any more is told apart and forgotten', async () => {
  for (const status of [401, 403]) expect((await failure(json(status, { error: { message: 'x' } }))).kind).toBe('outside')
  expect(sessionStorage).toHaveLength(0)
})

test('a program that does not answer is told apart', async () => {
  expect((await failure(() => Promise.reject(new TypeError('failed to fetch')))).kind).toBe('unreachable')
})

const EVENTS = 'data: {"kind":"delta","number":8}\n\n: sign of life\n\ndata: {"kind":"delta","number":9}\n\n'

test('the stream is asked for with the key, from behind the last number, and each message is heard', async () => {
  const { host: program, send } = host(json(200, EVENTS))
  const heard: number[] = []
  await program.watch({ epoch: 'e&1', number: 7 }, (message) => heard.push(message.number), never)
  expect(heard).toEqual([8, 9])
  expect(send.mock.calls[0]?.[0]).toBe('/api/events?after=e%261%3A7')
  expect(send.mock.calls[0]?.[1].headers).toMatchObject({ authorization: 'Bearer k' })
  await program.watch(null, () => undefined, never)
  expect(send.mock.calls[1]?.[0]).toBe('/api/events')
})

test('a message that cannot be read ends the stream with a sentence', async () => {
  const { host: program } = host(json(200, 'data: nonsense\n\n'))
  await expect(program.watch(null, () => undefined, never)).rejects.toMatchObject({ kind: 'refused' })
})

/** A stream that stays open until it is aborted, as fetch makes it. */
const endless: Answer = (_, { signal }) =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        const abort = () => controller.error(new DOMException('aborted', 'AbortError'))
        if (signal?.aborted) abort()
        else signal?.addEventListener('abort', abort)
      },
    }),
  )

test('whoever stops listening gets no complaint', async () => {
  const { host: program } = host(endless)
  const stop = new AbortController()
  const watching = program.watch(null, () => undefined, stop.signal)
  stop.abort()
  await expect(watching).resolves.toBeUndefined()
})

test('a stream that shows no sign of life is given up', async () => {
  vi.useFakeTimers()
  const { host: program } = host(endless)
  const heard: Message[] = []
  const watching = program.watch(null, (message) => heard.push(message), never).catch((cause: unknown) => cause)
  await vi.advanceTimersByTimeAsync(39_999)
  let over = false
  void watching.then(() => (over = true))
  await vi.advanceTimersByTimeAsync(0)
  expect(over).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(await watching).toMatchObject({ kind: 'unreachable' })
})
