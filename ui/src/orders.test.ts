import { expect, test } from 'vitest'
import { inShort, inWords, orders } from './orders'
import { call } from './turn.fixture'

test.each([
  ['none', [], '', 'no calls'],
  ['in order', [call(0, 0), call(1, 1)], '1 2 → 1 2', '2 calls, results in emitted order'],
  ['crossed', [call(0, 1), call(1, 2), call(2, 0)], '1 2 3 → 3 1 2', '3 calls, results in another order'],
  ['open', [call(0), call(1, 0), call(2)], '1 2 3 → 2 – –', '3 calls, 2 still open'],
  ['one', [call(0, 0)], '1 → 1', '1 call, results in emitted order'],
  ['open and crossed', [call(0, 1), call(1, 0), call(2)], '1 2 3 → 2 1 –', '3 calls, 1 still open, results in another order'],
])('%s', (_, calls, short, words) => {
  const both = orders(calls)
  expect(inShort(both)).toBe(short)
  expect(inWords(both)).toBe(words)
})

test('many calls are summed up', () => {
  const eight = (back: (place: number) => number | null) => inShort(orders(Array.from({ length: 8 }, (_, n) => call(n, back(n)))))
  expect(eight((n) => n)).toBe('8, in order')
  expect(eight((n) => 7 - n)).toBe('8, crossed')
  expect(eight((n) => (n < 6 ? n : null))).toBe('8, 2 open')
})
