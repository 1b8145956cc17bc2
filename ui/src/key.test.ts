import { beforeEach, expect, test } from 'vitest'
import { takeKey } from './key'

beforeEach(() => {
  sessionStorage.clear()
  history.replaceState(null, '', '/')
})

test('the key is taken out of the address at once and kept for the tab', () => {
  location.hash = '#key=k%2B1'
  expect(takeKey(window)).toBe('k+1')
  expect(location.href).not.toContain('key')
  expect(takeKey(window)).toBe('k+1')
})

test('a new key replaces the old one', () => {
  location.hash = '#key=old'
  takeKey(window)
  location.hash = '#key=new'
  expect(takeKey(window)).toBe('new')
})

test('without any key there is none', () => {
  expect(takeKey(window)).toBeNull()
  location.hash = '#key='
  expect(takeKey(window)).toBeNull()
})

test('the address is cleaned even where storage is forbidden', () => {
  location.hash = '#key=k'
  const setItem = () => {
    throw new DOMException('forbidden', 'SecurityError')
  }
  const place = { location, history, sessionStorage: { setItem } } as unknown as Window
  expect(takeKey(place)).toBe('k')
  expect(location.hash).toBe('')
})
