import { expect, test, vi } from 'vitest'
import { CallError, connect } from './host'

const reply = (status: number, body: unknown) =>
  vi.fn<typeof fetch>(() => Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status })))

async function failure(status: number, body: unknown): Promise<CallError> {
  const cause: unknown = await connect('k', reply(status, body))({ command: 'status' }).catch((error: unknown) => error)
  if (cause instanceof CallError) return cause
  throw new Error('the call did not fail as it should')
}

test('a command is posted with the key and its reply given back', async () => {
  const send = reply(200, { models: [] })
  await expect(connect('k', send)({ command: 'models' })).resolves.toEqual({ models: [] })
  const [to, request] = send.mock.calls[0] ?? []
  expect(to).toBe('/api')
  expect(request).toMatchObject({ method: 'POST', body: '{"command":"models"}', redirect: 'error' })
  expect(request?.headers).toMatchObject({ authorization: 'Bearer k', 'content-type': 'application/json' })
})

test('without a key nothing is sent', async () => {
  const send = reply(200, {})
  await expect(connect(null, send)({ command: 'status' })).rejects.toMatchObject({ kind: 'no-key' })
  expect(send).not.toHaveBeenCalled()
})

test('a refusal carries the sentence of the program', async () => {
  expect(await failure(404, { error: { message: 'No such model.' } })).toMatchObject({ kind: 'refused', message: 'No such model.' })
  expect((await failure(500, '<html>')).message).toContain('500')
  expect((await failure(200, 'not json')).kind).toBe('refused')
})

test('a key that is no longer accepted is told apart', async () => {
  expect((await failure(401, { error: { message: 'x' } })).kind).toBe('key-refused')
  expect((await failure(403, {})).kind).toBe('key-refused')
})

test('a program that does not answer is told apart', async () => {
  const nobody = vi.fn<typeof fetch>(() => Promise.reject(new TypeError('failed to fetch')))
  await expect(connect('k', nobody)({ command: 'status' })).rejects.toMatchObject({ kind: 'unreachable' })
})
