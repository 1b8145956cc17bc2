import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Message } from './contract'
import { Follow } from './follow'
import { CallError, type Host, type Position } from './host'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const message = (number: number) => ({ kind: 'delta', epoch: 'e', number }) as unknown as Message
const gone = () => new CallError('unreachable', 'gone')

/** A listener for which a negative number does not follow, and a host whose streams the test speaks into. */
function setUp() {
  let known: Position | null = null
  const heard: number[] = []
  const lost: string[] = []
  const streams: { after: Position | null; say: (number: number) => void; fail: (cause: CallError) => void; stop: AbortSignal }[] = []
  const host = {
    watch: (after: Position | null, hear: (message: Message) => void, stop: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        streams.push({ after, say: (number) => hear(message(number)), fail: reject, stop })
        stop.addEventListener('abort', () => resolve())
      }),
  } as unknown as Host
  const follow = new Follow(host, {
    position: () => known,
    hear: ({ number }) => {
      known = number < 0 ? null : { epoch: 'e', number }
      if (number >= 0) heard.push(number)
      return number >= 0
    },
    lost: (cause) => lost.push(cause.kind),
  })
  const over = follow.run()
  return { follow, over, heard, lost, streams, last: () => streams.at(-1) }
}

/** How long until the next stream is opened. */
async function pause(streams: unknown[]): Promise<number> {
  const before = streams.length
  const from = Date.now()
  while (streams.length === before) await vi.advanceTimersByTimeAsync(100)
  return Date.now() - from
}

test('a lost stream is resumed behind the last number, and the waiting grows until something is heard', async () => {
  const { streams, last, lost, heard } = setUp()
  expect(last()?.after).toBeNull()
  last()?.say(4)
  last()?.fail(gone())
  const pauses: number[] = []
  for (let tries = 0; tries < 7; tries += 1) {
    pauses.push(await pause(streams))
    if (tries < 6) last()?.fail(gone())
  }
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  expect(last()?.after).toEqual({ epoch: 'e', number: 4 })
  last()?.say(5)
  last()?.fail(gone())
  expect(await pause(streams)).toBe(500)
  expect(heard).toEqual([4, 5])
  expect(lost).toHaveLength(8)
})

test('after a gap a snapshot is asked for at once, and nobody is told', async () => {
  const { streams, last, lost } = setUp()
  last()?.say(4)
  last()?.say(-1)
  await vi.advanceTimersByTimeAsync(0)
  expect(streams).toHaveLength(2)
  expect(streams[0]?.stop.aborted).toBe(true)
  expect(last()?.after).toBeNull()
  expect(lost).toEqual([])
})

test('a program that never makes sense is not asked in circles', async () => {
  const { streams, last, lost } = setUp()
  last()?.say(-1)
  await vi.advanceTimersByTimeAsync(0)
  expect(lost).toEqual(['refused'])
  expect(streams).toHaveLength(1)
  expect(await pause(streams)).toBe(500)
})

test('outside nothing is tried until somebody says so', async () => {
  const { follow, streams, last } = setUp()
  last()?.fail(new CallError('outside', 'no key'))
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(streams).toHaveLength(1)
  follow.again()
  await vi.advanceTimersByTimeAsync(0)
  expect(streams).toHaveLength(2)
})

test('it ends, whether it listens or waits', async () => {
  const listening = setUp()
  listening.follow.end()
  await listening.over
  const waiting = setUp()
  waiting.last()?.fail(gone())
  await vi.advanceTimersByTimeAsync(0)
  waiting.follow.end()
  await waiting.over
  await vi.advanceTimersByTimeAsync(60_000)
  expect([listening.streams.length, waiting.streams.length]).toEqual([1, 1])
})
