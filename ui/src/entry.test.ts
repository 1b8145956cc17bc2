import { beforeEach, expect, test, vi } from 'vitest'
import { Entry } from './entry'
import { CallError } from './host'

beforeEach(() => {
  sessionStorage.clear()
  history.replaceState(null, '', '/')
})

const used = () => Promise.reject(new CallError('outside', 'used'))
const key = (name: string) => vi.fn(() => Promise.resolve(name))

test('the ticket leaves the address at once, becomes a key once, and only the key is kept', async () => {
  location.hash = '#ticket=t%2B1'
  const exchange = key('k')
  const entry = new Entry(window, exchange)
  expect(entry.take()).toBe(true)
  expect(location.href).not.toContain('ticket')
  expect(await entry.key()).toBe('k')
  expect(await entry.key()).toBe('k')
  expect(exchange.mock.calls).toEqual([['t+1']])
  expect(Object.values(sessionStorage)).toEqual(['k'])
  expect(await new Entry(window, exchange).key(), 'after a reload').toBe('k')
})

test('a used ticket lets nobody in, but puts nobody out who is inside', async () => {
  location.hash = '#ticket=used'
  const outside = new Entry(window, used)
  outside.take()
  await expect(outside.key()).rejects.toMatchObject({ kind: 'outside' })

  sessionStorage.setItem('weir.session-key', 'k')
  location.hash = '#ticket=used'
  const inside = new Entry(window, used)
  inside.take()
  expect(await inside.key()).toBe('k')
})

test('a ticket that never reached the program is tried again', async () => {
  location.hash = '#ticket=t'
  const exchange = vi.fn<() => Promise<string>>().mockRejectedValueOnce(new CallError('unreachable', 'x')).mockResolvedValueOnce('k')
  const entry = new Entry(window, exchange)
  entry.take()
  await expect(entry.key()).rejects.toMatchObject({ kind: 'unreachable' })
  expect(await entry.key()).toBe('k')
})

test('without anything there is no key, and a forgotten one is gone for good', async () => {
  expect(new Entry(window, used).take()).toBe(false)
  await expect(new Entry(window, used).key()).rejects.toMatchObject({ kind: 'outside' })
  sessionStorage.setItem('weir.session-key', 'k')
  const entry = new Entry(window, used)
  entry.forget('another')
  expect(await entry.key()).toBe('k')
  entry.forget('k')
  await expect(entry.key()).rejects.toMatchObject({ kind: 'outside' })
  expect(sessionStorage).toHaveLength(0)
})

test('where storage is forbidden the address is cleaned and the key lasts for the page', async () => {
  location.hash = '#ticket=t'
  const forbidden = () => {
    throw new DOMException('forbidden', 'SecurityError')
  }
  const sessionStorage = { getItem: forbidden, setItem: forbidden, removeItem: forbidden }
  const entry = new Entry({ location, history, sessionStorage } as unknown as Window, key('k'))
  entry.take()
  expect(location.hash).toBe('')
  expect(await entry.key()).toBe('k')
})
