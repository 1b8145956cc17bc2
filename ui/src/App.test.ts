import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'
import App from './App.svelte'
import type { Command, Mode, Model, Replies } from './contract'
import { CallError, type Call } from './host'
import { Picture } from './picture.svelte'
import { turn } from './turn.fixture'

const model = (mode: Mode): Model => ({
  model: 'practice-lite',
  display_name: 'Practice, Lite',
  mode,
  dialect: mode === 'full' ? 'full' : 'lite',
  reason: mode === 'auto' ? 'the catalog asks for Lite' : 'set by you',
  lite_in_catalog: true,
  accounts: 3,
})

const quiet: Replies = {
  status: { version: '0.1.0', base_url: 'http://127.0.0.1:8788/v1', practice: true, uptime_s: null, in_flight: null },
  models: { models: [model('auto')] },
  set_mode: { model: model('full') },
  accounts: { accounts: [] },
  turns: { turns: [] },
}

/** A program that gives these replies, and what it was asked. */
function program(replies: Partial<Replies>): { call: Call; asked: Command[] } {
  const asked: Command[] = []
  const all = { ...quiet, ...replies }
  const call = ((command: Command) => {
    asked.push(command)
    return Promise.resolve(all[command.command])
  }) as Call
  return { call, asked }
}

let app: Record<string, never> | undefined

async function show(call: Call): Promise<Picture> {
  const picture = new Picture(call)
  await picture.refresh()
  app = mount(App, { target: document.body, props: { picture } })
  flushSync()
  return picture
}

afterEach(async () => {
  if (app) await unmount(app)
  app = undefined
})

const text = () => document.body.textContent.replace(/\s+/g, ' ')
const radio = (mode: Mode) => document.querySelector<HTMLInputElement>(`input[value="${mode}"]`)

test('without a key the page says how to get one', async () => {
  await show(() => Promise.reject(new CallError('no-key', 'This page has no key yet.')))
  expect(document.querySelector('[role="alert"]')?.textContent).toContain('weir open')
  expect(text()).not.toContain('Models')
})

test('what is not there yet is said, and missing numbers are dashes', async () => {
  await show(program({}).call)
  expect(text()).toContain('No account yet')
  expect(text()).toContain('No turn yet. Point a client at http://127.0.0.1:8788/v1')
  expect(text()).toContain('In flight–')
  expect(text()).toContain('Practice')
})

test('the switch is one radio group per model and sends the choice', async () => {
  const { call, asked } = program({})
  await show(call)
  expect(document.querySelector('fieldset legend')?.textContent).toContain('practice-lite')
  expect(radio('auto')?.checked).toBe(true)

  radio('full')?.click()
  await expect.poll(() => text()).toContain('practice-lite is set to full: the next turn goes out full.')
  expect(asked).toContainEqual({ command: 'set_mode', model: 'practice-lite', mode: 'full' })
  expect(radio('full')?.checked).toBe(true)
  expect(text()).toContain('The backend does not document full for this model')
})

test('a refused choice leaves the switch where it was', async () => {
  const { call } = program({})
  const stubborn = ((command: Command) =>
    command.command === 'set_mode' ? Promise.reject(new CallError('refused', 'The data folder is read-only.')) : call(command)) as Call
  await show(stubborn)
  radio('full')?.click()
  await expect.poll(() => text()).toContain('practice-lite stays as it is. The data folder is read-only.')
  expect(radio('auto')?.checked).toBe(true)
  expect(radio('full')?.checked).toBe(false)
})

test('an answer asked for before a choice does not undo it', async () => {
  const { call } = program({})
  let open: (() => void) | undefined
  const gate = new Promise<void>((resolve) => (open = resolve))
  let slow = false
  const picture = await show((async (command: Command) => {
    if (slow && command.command === 'models') await gate
    return call(command)
  }) as Call)
  slow = true
  const round = picture.refresh()
  await picture.choose('practice-lite', 'full')
  open?.()
  await round
  expect(picture.models?.[0]?.mode).toBe('full')
})

test('a turn whose usage is not known shows dashes', async () => {
  const turns = [turn({ id: '1', first_event_ms: 310, ended_ms: 1_240, account: 'one' })]
  await show(program({ turns: { turns } }).call)
  const cells = [...document.querySelectorAll('section:last-of-type tbody tr:last-child td')].map((cell) => cell.textContent.trim())
  expect(cells.slice(4)).toEqual(['310 ms', '1.24 s', '–', '–', '–', '–', 'completed'])
})

test('when the program falls silent the last picture stays, marked as old', async () => {
  const { call } = program({})
  let silent = false
  const picture = await show(((command: Command) =>
    silent ? Promise.reject(new CallError('unreachable', 'The program does not answer.')) : call(command)) as Call)
  silent = true
  await picture.refresh()
  flushSync()
  expect(text()).toContain('weir serve')
  expect(text()).toMatch(/What you see below is \d+ s old/)
  expect(text()).toContain('Practice, Lite')
})
