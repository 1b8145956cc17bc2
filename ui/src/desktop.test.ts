import { clearMocks, mockIPC } from '@tauri-apps/api/mocks'
import { afterEach, expect, test } from 'vitest'
import { DesktopHost, inDesktop } from './desktop'

afterEach(() => clearMocks())

const set = { command: 'set_mode', model: 'm', mode: 'full' } as const

interface Watch {
  onMessage: { onmessage: (text: string) => void }
  after: string | null
}

/** A desktop program whose `watch` is pending until the test ends it. */
function watching() {
  const asked: Watch[] = []
  let end: { resolve: () => void; reject: (cause: unknown) => void } | undefined
  mockIPC((name, args) => {
    if (name !== 'watch') throw new Error(`unexpected ${name}`)
    asked.push(args as unknown as Watch)
    return new Promise<void>((resolve, reject) => (end = { resolve, reject }))
  })
  return { asked, end: () => end, tell: (text: string) => asked[0]?.onMessage.onmessage(text) }
}

test('the desktop is told by what Tauri leaves in the window', () => {
  expect(inDesktop({})).toBe(false)
  mockIPC(() => null)
  expect(inDesktop(window)).toBe(true)
})

test('a command is invoked and its reply given back; a refusal carries its sentence', async () => {
  const asked: unknown[] = []
  mockIPC((name, args) => {
    asked.push([name, args])
    return { model: { model: 'm' } }
  })
  await expect(new DesktopHost().call(set)).resolves.toEqual({ model: { model: 'm' } })
  expect(asked).toEqual([['call', { command: set }]])

  mockIPC(() => Promise.reject({ code: 'unknown_model', message: 'No account offers `m`.' } as unknown as Error))
  await expect(new DesktopHost().call(set)).rejects.toMatchObject({ kind: 'refused', message: 'No account offers `m`.' })
})

test('messages come through a channel, from behind the last number', async () => {
  const program = watching()
  const stop = new AbortController()
  const heard: number[] = []
  const over = new DesktopHost().watch({ epoch: 'e', number: 7 }, (message) => heard.push(message.number), stop.signal)
  await expect.poll(() => program.asked.length).toBe(1)
  expect(program.asked[0]?.after).toBe('e:7')
  program.tell('{"kind":"delta","number":8}')
  stop.abort()
  await over
  program.tell('{"kind":"delta","number":9}')
  expect(heard).toEqual([8])
})

test('the end of the stream is told, with the reason if there is one', async () => {
  const program = watching()
  const never = new AbortController().signal
  const over = new DesktopHost().watch(null, () => undefined, never)
  await expect.poll(() => program.end()).toBeTruthy()
  expect(program.asked[0]?.after).toBeNull()
  program.end()?.resolve()
  await expect(over).resolves.toBeUndefined()

  const other = watching()
  const refused = new DesktopHost().watch(null, () => undefined, never)
  await expect.poll(() => other.end()).toBeTruthy()
  other.end()?.reject({ code: 'port_in_use', message: 'Port 8788 is taken.' })
  await expect(refused).rejects.toMatchObject({ kind: 'refused', message: 'Port 8788 is taken.' })
})

test('a message that cannot be read ends the stream with a sentence', async () => {
  const program = watching()
  const over = new DesktopHost().watch(null, () => undefined, new AbortController().signal)
  await expect.poll(() => program.asked.length).toBe(1)
  program.tell('nonsense')
  await expect(over).rejects.toMatchObject({ kind: 'refused' })
})
