/**
 * A burst through the whole program: clients cause ten thousand changes, each a row of the journal or a word to the page.
 * The page answers its user in the middle of it, and at the end page, stream and store tell the same.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Weir } from '../../tests/e2e/harness/weir.mjs'
import { browser } from './browser.mjs'
import { open } from './page.mjs'

const LIMIT = { timeout: 480_000 }
const EVENTS = 10_000
const CALLS = 40
const CLIENTS = 4

const NAMES = Array.from({ length: CALLS }, (_, n) => `{ name = "look", arguments = { number = ${n} } }`)
const SCENARIO = `pace = 0.0\n[[rule]]\nwhen = { prompt = "burst" }\nreply = { calls = [${NAMES.join(', ')}] }\n`
const TOOL = { type: 'function', name: 'look', description: 'looks', strict: false, parameters: { type: 'object', properties: { number: { type: 'number' } } } }

/** One turn with its calls, as a client sends it; fails where the answer does not end well. */
async function turn(weir, conversation) {
  const answer = await fetch(`${weir.baseUrl}/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${weir.key}`, 'content-type': 'application/json', 'x-session-id': conversation },
    body: JSON.stringify({ model: 'practice-full', input: [{ role: 'user', content: [{ type: 'input_text', text: 'burst' }] }], tools: [TOOL], stream: true, store: false }),
  })
  assert.match(await answer.text(), /"response\.completed"/)
}

/** What the page's own program says to a command, or the number and turns of a fresh snapshot. */
const ask = (page, command) =>
  page.evaluate(async (command) => {
    const headers = { authorization: `Bearer ${Object.values(sessionStorage)[0]}`, 'content-type': 'application/json' }
    return (await fetch('/api', { method: 'POST', headers, body: JSON.stringify(command) })).json()
  }, command)
const snapshot = (page) =>
  page.evaluate(async () => {
    const stop = new AbortController()
    const stream = await fetch('/api/events', { headers: { authorization: `Bearer ${Object.values(sessionStorage)[0]}` }, signal: stop.signal })
    const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!/^data: .*\n\n/ms.test(text)) text += (await reader.read()).value
    stop.abort()
    const { kind, number, turns } = JSON.parse(/^data: (.*)$/m.exec(text)[1])
    return { kind, number, ids: turns.map(({ id }) => id) }
  })

test('ten thousand events neither freeze the page nor drop a row', LIMIT, async (t) => {
  const weir = await Weir.start({ scenario: SCENARIO })
  t.after(() => weir.stop())
  const chromium = await browser()
  t.after(() => chromium.close())
  const { page, complaints } = await open(chromium, (await weir.command('open', '--print')).trim())
  page.setDefaultTimeout(240_000)
  await page.getByText('No turn yet').waitFor()
  // How long the page's one thread was away at most, beside how long all of it took.
  await page.evaluate(() => {
    window.beats = { first: performance.now(), last: performance.now(), longest: 0 }
    setInterval(() => {
      const now = performance.now()
      window.beats.longest = Math.max(window.beats.longest, now - window.beats.last)
      window.beats.last = now
    }, 10)
  })

  let sent = 0
  let answered = false
  const client = async (name) => {
    for (let number = 0; sent * CALLS < EVENTS || !answered; number += 1) {
      sent += 1
      // A conversation each, since the same request again and again is what the loop breaker is for.
      await turn(weir, `ses-burst-${name}-${number}`)
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name)))
  const user = (async () => {
    await page.locator('[data-turn]').nth(20).waitFor({ state: 'attached' })
    await page.getByRole('group', { name: 'Serving mode of practice-lite' }).getByRole('radio', { name: 'full' }).check({ force: true })
    await page.getByText('practice-lite is set to full: the next turn goes out full.').waitFor()
    // The burst goes on until here: what was answered was answered in the middle of it.
    answered = true
  })()
  await Promise.all([clients, user])

  const beats = await page.evaluate(() => window.beats)
  const away = beats.longest / (beats.last - beats.first)
  assert.ok(away < 0.5, `the page was away for ${Math.round(away * 100)} % of the burst at a stretch`)

  const rows = JSON.parse(await weir.command('turns', '--limit', String(2 * sent), '--json')).turns
  assert.equal(rows.length, sent, 'a row for each turn')
  assert.ok(rows.every(({ outcome }) => outcome === 'completed'))
  for (const { id } of rows) assert.equal((await ask(page, { command: 'turn', id })).calls.length, CALLS, 'a row for each call')

  const told = await snapshot(page)
  assert.equal(told.kind, 'snapshot')
  assert.ok(told.number >= EVENTS, `${told.number} changes`)
  t.diagnostic(`${sent} turns, ${told.number} changes, ${rows.length * CALLS} calls in the journal; the page was away for ${(away * 100).toFixed(1)} % at most`)
  await page.waitForFunction((ids) => {
    const shown = new Set([...document.querySelectorAll('[data-turn]')].map((element) => element.dataset.turn))
    return shown.size === ids.length && ids.every((id) => shown.has(id))
  }, told.ids)
  assert.deepEqual(complaints, [])
})
