import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test, vi } from 'vitest'
import App from './App.svelte'
import type { AccountRow, Mode } from './contract'
import { CallError } from './host'
import { Program, model, status } from './host.fixture'
import { Picture } from './picture.svelte'
import { call, turn } from './turn.fixture'

let app: Record<string, never> | undefined

/** The page with a program behind it. `frame` draws what was heard since the last one. */
function open() {
  const program = new Program()
  const frames: (() => void)[] = []
  let drawn = 0
  const picture = new Picture(program, (show) => {
    frames.push(show)
    return () => frames.splice(frames.indexOf(show), 1)
  })
  app = mount(App, { target: document.body, props: { picture } })
  flushSync()
  const frame = () => {
    for (const show of frames.splice(0)) {
      show()
      drawn += 1
    }
    flushSync()
  }
  return { program, picture, frame, drawn: () => drawn }
}

/** The page after a first snapshot. */
function shown(known: Parameters<Program['snapshot']>[0] = {}) {
  const page = open()
  page.program.snapshot({ models: [model('auto')], ...known })
  page.frame()
  return page
}

afterEach(async () => {
  if (app) await unmount(app)
  app = undefined
  vi.useRealTimers()
})

const text = () => document.body.textContent.replace(/\s+/g, ' ')
const radio = (mode: Mode) => document.querySelector<HTMLInputElement>(`input[value="${mode}"]`)
const lines = () => [...document.querySelectorAll<HTMLElement>('[data-turn]')]
const heard = async () => {
  await Promise.resolve()
  await new Promise((resolve) => setTimeout(resolve))
  flushSync()
}

test('outside the page says how to get in, and shows nothing else', async () => {
  const { program } = open()
  program.fail('outside', 'This page has no key yet.')
  await heard()
  expect(document.querySelector('[role="alert"]')?.textContent).toContain('weir open')
  expect(text()).not.toContain('Models')
})

test('what is not there yet is said, and missing numbers are dashes', () => {
  shown({ models: [] })
  expect(text()).toContain('There is no account, so no turn can be served. This version has only practice accounts')
  expect(text()).toContain('No model is known')
  expect(text()).toContain('No turn yet. Point a client at http://127.0.0.1:8788/v1')
  expect(text()).toContain('Input tokens– of it cached– Output tokens–')
  expect(text()).toContain('Practice')
})

test('an account shows what is left, the age of that, and why it cannot serve', () => {
  vi.useFakeTimers({ now: 1_000_000_000, toFake: ['Date'] })
  const account: AccountRow = {
    name: 'one',
    plan: null,
    state: 'at its limit',
    reason: 'The backend says that its usage limit is reached.',
    blocked_until: null,
    in_flight: 0,
    windows: [{ minutes: 300, used_percent: 38, resets_at: 1_000_000 + 600 }],
    read_at: 1_000_000 - 120,
  }
  shown({ accounts: [account, { ...account, name: 'two', state: 'ready', reason: null, windows: [], read_at: null }] })
  expect(text()).toContain('62 % left resets in 10 min')
  expect(document.querySelector('[role="meter"]')?.getAttribute('aria-valuetext')).toBe('62 % left')
  expect(text()).toContain('The backend says that its usage limit is reached. Usage reported 2 min ago.')
  expect(text()).toContain('Usage not reported yet.')
})

test('an account that is blocked says until when', () => {
  const now = new Date(2026, 10, 30, 13, 40)
  vi.useFakeTimers({ now, toFake: ['Date'] })
  const blocked_until = new Date(2026, 10, 30, 14, 5).getTime() / 1_000
  const account: AccountRow = { name: 'one', plan: null, state: 'at its limit', reason: null, blocked_until, in_flight: 0, windows: [], read_at: null }
  shown({ accounts: [account, { ...account, name: 'two', blocked_until: now.getTime() / 1_000 }] })
  const states = [...document.querySelectorAll('.state')].map((state) => state.textContent)
  expect(states).toEqual(['at its limit until 14:05', 'at its limit'])
})

test('the switch is one radio group per model; the choice is shown at once and confirmed by the stream', async () => {
  const { program, frame } = shown()
  expect(document.querySelector('fieldset legend')?.textContent).toContain('practice-lite')
  expect(radio('auto')?.checked).toBe(true)

  radio('full')?.click()
  flushSync()
  expect(document.querySelector('fieldset')?.getAttribute('aria-busy')).toBe('true')
  await expect.poll(() => text()).toContain('practice-lite is set to full: the next turn goes out full.')
  expect(program.asked).toEqual([{ command: 'set_mode', model: 'practice-lite', mode: 'full' }])
  expect(radio('full')?.checked).toBe(true)
  program.delta({ models: [model('full')] })
  frame()
  expect(document.querySelector('fieldset')?.getAttribute('aria-busy')).toBe('false')
  expect(radio('full')?.checked).toBe(true)
  expect(text()).toContain('auto would be lite')
  expect(text()).toContain('The backend does not document full for a model whose catalog asks for Lite; if it refuses a turn, set the model back to auto.')
})

test('a refused choice leaves the switch where it was', async () => {
  const { program } = shown()
  program.answer = () => Promise.reject(new CallError('refused', 'The data folder is read-only.'))
  radio('full')?.click()
  await expect.poll(() => text()).toContain('practice-lite stays as it is. The data folder is read-only.')
  expect(radio('auto')?.checked).toBe(true)
  expect(radio('full')?.checked).toBe(false)
})

test('choices go out one after another, and the last one stands', async () => {
  const { program, picture } = shown()
  const gates: (() => void)[] = []
  program.answer = ({ mode }) => new Promise((resolve) => gates.push(() => resolve({ model: model(mode) })))
  void picture.choose('practice-lite', 'lite')
  const last = picture.choose('practice-lite', 'full')
  await heard()
  expect(program.asked.map(({ mode }) => mode)).toEqual(['lite'])
  gates[0]?.()
  await heard()
  expect(program.asked.map(({ mode }) => mode)).toEqual(['lite', 'full'])
  expect(radio('full')?.checked).toBe(true)
  gates[1]?.()
  await last
})

test('a mode that was changed elsewhere is shown without being asked for', () => {
  const { program, frame } = shown()
  program.delta({ models: [model('lite')] })
  frame()
  expect(radio('lite')?.checked).toBe(true)
})

test('a turn whose usage is not known shows dashes', () => {
  shown({ turns: [turn({ id: '1', first_event_ms: 310, ended_ms: 1_240, account: 'one' })] })
  const cells = [...document.querySelectorAll('.turn [role="cell"]')].map((cell) => cell.textContent.trim())
  expect(cells.slice(3)).toEqual(['1.24 s', '–', '–', '–', '0 B', 'no calls', 'completed'])
})

test('details tell why, by whom, when, and both orders of the calls', () => {
  const known = turn({
    id: 'turn-1',
    account: 'one',
    account_reason: 'most headroom; moved after usage_limit_reached',
    moves: 1,
    accepted_ms: 90,
    first_event_ms: 310,
    calls: [call(0, 1), call(1, 0), call(2)],
    outcome: 'failed',
    error_code: 'upstream_cut',
    error_message: 'The backend ended the answer early.',
  })
  const { program, frame } = shown({ turns: [known] })
  lines()[0]?.click()
  flushSync()
  expect(lines()[0]?.getAttribute('aria-expanded')).toBe('true')
  for (const part of [
    'lite (auto: the catalog says use_responses_lite for this model)',
    'one: most headroom; moved after usage_limit_reached',
    'Moves1',
    'Acceptedafter 90 ms',
    'Commit point–',
    'upstream_cut The backend ended the answer early.',
    '3 calls, 1 still open, results in another order',
  ]) {
    expect(text()).toContain(part)
  }
  const order = (place: number) => [...document.querySelectorAll(`.both > div:nth-of-type(${place}) li`)].map((call) => call.textContent.trim()[0])
  expect(order(1)).toEqual(['1', '2', '3'])
  expect(order(2)).toEqual(['2', '1', '–'])
  expect(document.querySelectorAll('.both line')).toHaveLength(2)

  program.delta({ turns: [{ ...known, calls: [call(0, 1), call(1, 0), call(2, 2)] }] })
  frame()
  expect(order(2)).toEqual(['2', '1', '3'])
})

test('the arrow keys go from turn to turn, and Tab stops at one of them only', () => {
  shown({ turns: ['c', 'b', 'a'].map((id, place) => turn({ id, started_at: 2 - place, ended_ms: 1 })) })
  const stops = () => lines().filter(({ tabIndex }) => tabIndex === 0).map(({ dataset }) => dataset.turn)
  const press = (key: string) => {
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
    flushSync()
  }
  expect(stops()).toEqual(['a'])
  lines()[0]?.focus()
  press('ArrowDown')
  expect([document.activeElement, stops()]).toEqual([lines()[1], ['b']])
  press('End')
  expect([document.activeElement, stops()]).toEqual([lines()[2], ['c']])
  press('ArrowDown')
  expect(document.activeElement).toBe(lines()[2])
  press('Home')
  expect(document.activeElement).toBe(lines()[0])
})

test('ten thousand updates are drawn once per frame, and nobody loses the focus', () => {
  const turns = Array.from({ length: 200 }, (_, place) =>
    turn({ id: `t${place}`, conversation: `c${place}`, started_at: -place, ended_ms: 1, calls: [call(0, 0), call(1, 1), call(2, 2)] }),
  )
  const { program, picture, frame, drawn } = shown({ turns })
  expect(lines()).toHaveLength(200)
  const focused = lines()[7]
  focused?.focus()
  focused?.click()
  flushSync()
  const still = lines()[3]?.closest('[role="row"]')
  let touched = 0
  const watcher = new MutationObserver((changes) => (touched += changes.length))
  if (still) watcher.observe(still, { subtree: true, childList: true, characterData: true, attributes: true })

  const before = drawn()
  for (let number = 0; number < 10_000; number += 1) {
    const id = number % 100 === 0 ? `new${number}` : `t${100 + (number % 50)}`
    program.delta({
      status: { ...status, in_flight: number },
      turns: [turn({ id, conversation: id, started_at: number % 100 === 0 ? number + 1 : -100 - (number % 50), ended_ms: 1, output_tokens: number })],
    })
    if (number % 1_000 === 999) frame()
  }
  expect(drawn() - before).toBe(10)
  expect(picture.turns).toHaveLength(200)
  expect(picture.status?.in_flight).toBe(9_999)
  expect(lines()[0]?.dataset.turn).toBe('new9900')
  expect(lines()).toHaveLength(200)
  expect(document.activeElement).toBe(focused)
  expect(focused?.getAttribute('aria-expanded')).toBe('true')
  touched += watcher.takeRecords().length
  expect(touched, 'a turn in which nothing changed is not drawn again').toBe(0)
})

test('time moves only for what runs', () => {
  vi.useFakeTimers({ now: 10_000 })
  const runs = turn({ id: '1', started_at: 9_000, outcome: null })
  const { program, picture, frame } = shown({ turns: [runs] })
  const lasted = () => document.querySelector('.took')?.textContent.trim()
  expect(lasted()).toBe('1 s')
  vi.advanceTimersByTime(2_000)
  flushSync()
  expect(lasted()).toBe('3 s')
  program.delta({ turns: [{ ...runs, outcome: 'completed', ended_ms: 3_100 }] })
  frame()
  const { now } = picture
  vi.advanceTimersByTime(10_000)
  expect(picture.now).toBe(now)
  expect(lasted()).toBe('3.1 s')
})

test('when the stream is lost the page keeps what it knows, says how old that is, and goes on where it was', async () => {
  vi.useFakeTimers({ now: 10_000 })
  const { program, frame } = shown()
  expect(text()).toContain('live')
  program.fail()
  await vi.advanceTimersByTimeAsync(3_000)
  flushSync()
  expect(document.querySelector('.trouble [role="status"]')?.textContent).toContain('Connection lost, trying again.')
  expect(text()).toContain('What you see is 3 s old.')
  expect(text()).toContain('Practice, Lite')
  expect(program.watched.slice(0, 2)).toEqual([null, { epoch: 'e', number: 1 }])
  program.delta({ models: [model('full')] })
  frame()
  expect(document.querySelector('.trouble')).toBeNull()
  expect(radio('full')?.checked).toBe(true)
})

test('a missing delta is mended by a snapshot and nobody notices', async () => {
  const { program, frame } = shown()
  program.delta({ after: 0 })
  await heard()
  expect(program.watched).toEqual([null, null])
  program.snapshot({ number: 9, models: [model('lite')] })
  frame()
  expect(document.querySelector('.trouble')).toBeNull()
  expect(radio('lite')?.checked).toBe(true)
})

test('a program that was started anew asks for a new way in, over what is still shown', async () => {
  const { program } = shown()
  program.fail('outside', 'The program does not know the key of this page; it may have been started anew.')
  await heard()
  expect(document.querySelector('[role="alert"]')?.textContent).toContain('weir open')
  expect(text()).toContain('Practice, Lite')
  expect(program.watched).toHaveLength(1)
})
