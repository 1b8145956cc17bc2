import { expect, test } from 'vitest'
import * as show from './show'

test('a missing number is a dash in every form, and zero is a zero', () => {
  for (const form of [show.count, show.tokens, show.bytes, show.percent, show.took, show.stretch, show.clock]) {
    for (const missing of [null, undefined, Number.NaN]) expect(form(missing)).toBe('–')
    expect(form(0)).not.toContain('–')
  }
  expect(show.several(null, 'move')).toBe('– moves')
  expect(show.resets(null, 0)).toBe('resets –')
})

test.each([
  [999, '999'],
  [1_000, '1k'],
  [12_444, '12.4k'],
  [999_499, '999k'],
  [999_500, '1M'],
  [1_234_567, '1.23M'],
])('%d tokens are %s', (value, text) => {
  expect(show.tokens(value)).toBe(text)
})

test.each([
  [999, '999 B'],
  [22_410, '22.4 kB'],
  [999_700, '1 MB'],
])('%d bytes are %s', (value, text) => {
  expect(show.bytes(value)).toBe(text)
})

test.each([
  [84, '84 ms'],
  [999.6, '1 s'],
  [1_240, '1.24 s'],
  [59_960, '1 min 0 s'],
  [125_000, '2 min 5 s'],
])('%d ms took %s', (value, text) => {
  expect(show.took(value)).toBe(text)
})

test.each([
  [45, '45 s'],
  [60, '1 min'],
  [3_600, '1 h'],
  [11_140, '3 h 5 min'],
  [187_200, '2 d 4 h'],
])('%d s are %s', (value, text) => {
  expect(show.stretch(value)).toBe(text)
})

test.each([
  [300, '5 h'],
  [1_440, 'daily'],
  [10_080, 'weekly'],
  [43_200, 'monthly'],
  [43_800, 'monthly'],
  [4_320, '3 d'],
])('a window of %d minutes is called %s', (minutes, name) => {
  expect(show.windowName(minutes)).toBe(name)
})

test('a window starts anew at a Unix second, and what was read before is old', () => {
  expect(show.resets(1_000 + 7_800, 1_000_000)).toBe('resets in 2 h 10 min')
  expect(show.resets(1_000, 1_000_000)).toBe('has reset since')
})

test('an end is a time of day, with its day where that is another', () => {
  const at = (day: number, hour: number, minute: number) => new Date(2026, 10, day, hour, minute).getTime()
  expect(show.until(at(30, 14, 5) / 1_000, at(30, 9, 0))).toBe('14:05')
  expect(show.until(at(31, 0, 5) / 1_000, at(30, 23, 50))).toBe('1 Dec, 00:05')
  expect(show.until(null, 0)).toBe('–')
})

test('an age is counted from a Unix second', () => {
  expect(show.ago(1_000, 1_059_000)).toBe('just now')
  expect(show.ago(1_000, 1_060_000)).toBe('1 min ago')
  expect(show.ago(null, 1_060_000)).toBe('–')
})

test('what is left is never rounded up, and a little is not nothing', () => {
  expect([99.6, 62, 0.4, 0, null].map(show.remains)).toEqual(['99 %', '62 %', 'under 1 %', '0 %', '–'])
})

test('the cached share needs both numbers and some input', () => {
  expect(show.cachedShare(200, 50)).toBe(25)
  expect(show.cachedShare(200, 0)).toBe(0)
  expect(show.cachedShare(200, null)).toBeNull()
  expect(show.cachedShare(null, 50)).toBeNull()
  expect(show.cachedShare(0, 0)).toBeNull()
})

test('an identifier is cut from the front, where neighbours look alike', () => {
  expect(show.brief('short')).toBe('short')
  expect(show.brief('ses_0123456789abcdef')).toBe('…89abcdef')
})
