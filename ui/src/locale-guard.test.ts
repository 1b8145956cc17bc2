import { expect, test } from 'vitest'
import { guard, usable } from './locale-guard'

test('the language C, which the web engine of Linux reports without LANG, is replaced', () => {
  const browser = { language: 'C', languages: ['C'] } as unknown as Navigator
  expect(usable('C')).toBe(false)
  guard(browser)
  expect(new Intl.NumberFormat(browser.language).format(1)).toBe('1')
  expect(browser.languages).toEqual(['en'])
})

test('a real language stays', () => {
  const browser = { language: 'de-CH', languages: ['de-CH'] } as unknown as Navigator
  guard(browser)
  expect(browser.language).toBe('de-CH')
})
