/**
 * The page that is built into the real program, in a real browser: let in by a ticket, sees turns as they happen, flips
 * a mode, loses the program and finds it again.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { browser } from './browser.mjs'
import { accessible, open } from './page.mjs'
import { Weir, output, replay, user } from './weir.mjs'

const LIMIT = { timeout: 120_000 }

describe('the page of a program', () => {
  let chromium
  let weir
  let first
  let second
  before(async () => {
    weir = await Weir.start()
    chromium = await browser()
    first = await open(chromium, await weir.ticket())
    second = await open(chromium, await weir.ticket())
  }, LIMIT)
  after(async () => {
    await chromium?.close()
    await weir?.remove()
  })
  const radio = ({ page }, model, mode) => page.getByRole('group', { name: `Serving mode of ${model}` }).getByRole('radio', { name: mode })

  test('a ticket lets the page in and leaves the address; nothing but its own key is kept', LIMIT, async () => {
    await first.page.getByText('No turn yet').waitFor()
    assert.ok(await first.page.getByText('Practice: nothing here is real').isVisible())
    assert.equal(first.page.url(), `${weir.origin}/`)
    const kept = await first.page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage), document.cookie])
    assert.match(String(kept[0]), /^session_/)
    assert.deepEqual(kept.slice(1), [[], ''])
    await accessible(first.page, 'no turns')
  })

  test('turns appear as they happen, children below their parent, calls in both orders', LIMIT, async () => {
    const launch = async (conversation, order) => {
      const asked = user('Launch 3 subagents')
      const calls = (await weir.turn(conversation, [asked])).filter(({ type }) => type === 'function_call')
      assert.equal(calls.length, 3)
      await first.page.getByText('1 2 3 → – – –').first().waitFor()
      await weir.turn(`${conversation}-child`, [user('Reply with the single word alpha')], { parent: conversation })
      await weir.turn(conversation, [asked, ...calls.map(replay), ...order(calls).map(output)])
    }
    await launch('ses-straight', (calls) => calls)
    await first.page.getByText('1 2 3 → 1 2 3').first().waitFor()
    await launch('ses-crossed', (calls) => [...calls].reverse())
    await first.page.getByText('1 2 3 → 3 2 1').first().waitFor()
    const bursts = await first.page.locator('.burst').allInnerTexts()
    assert.equal(bursts.length, 2)
    for (const text of bursts) assert.match(text, /3 turns/)
    assert.equal(await first.page.getByText('subagent', { exact: true }).count(), 2)

    await first.page.locator('[data-turn]').first().click()
    await first.page.getByText('3 calls, results in another order').last().waitFor()
    await first.page.getByText('Commit point').waitFor()
    await accessible(first.page, 'an open turn')
  })

  test('a flipped mode reaches the store and the other page', LIMIT, async () => {
    assert.ok(await radio(second, 'practice-lite', 'auto').isChecked())
    await radio(first, 'practice-lite', 'full').check({ force: true })
    await first.page.getByText('practice-lite is set to full: the next turn goes out full.').waitFor()
    await second.page.waitForFunction(() => document.querySelector('input[name="mode-practice-lite"][value="full"]').checked)
    const row = JSON.parse(await weir.command('mode', '--json')).find(({ model }) => model === 'practice-lite')
    assert.deepEqual([row.mode, row.dialect], ['full', 'full'])
    // The other way round: the command line changes what the page shows.
    await weir.command('mode', 'practice-lite', 'lite')
    await first.page.waitForFunction(() => document.querySelector('input[name="mode-practice-lite"][value="lite"]').checked)
    await weir.command('mode', 'practice-lite', 'full')
  })

  test('a used ticket and a forged key are told what to do', LIMIT, async (t) => {
    const ticket = await weir.ticket()
    const guest = await open(chromium, ticket)
    t.after(guest.close)
    await guest.page.getByText('Latest turns').waitFor()
    const late = await open(chromium, ticket)
    t.after(late.close)
    await late.page.getByRole('alert').getByText('weir open').waitFor()
    assert.ok(await late.page.getByText('This address was used before or is too old.').isVisible())
    assert.equal(await late.page.getByText('Latest turns').count(), 0)
    await late.page.evaluate(() => sessionStorage.setItem('weir.session-key', 'session_forged'))
    await late.page.reload()
    await late.page.getByRole('alert').getByText('does not know the key of this page').waitFor()
    assert.equal(await late.page.getByText('Latest turns').count(), 0)
  })

  test('a page that is reloaded is still inside', LIMIT, async () => {
    await second.page.reload()
    await second.page.getByText('1 2 3 → 3 2 1').first().waitFor()
  })

  test('a lost program is said calmly; started anew, it asks for a new ticket and goes on', LIMIT, async () => {
    await weir.kill()
    await first.page.getByRole('status').getByText('Connection lost, trying again.').waitFor()
    assert.ok(await first.page.getByText('1 2 3 → 3 2 1').first().isVisible(), 'what is known stays')
    assert.match(await first.page.locator('.age', { hasText: 'What you see is' }).innerText(), /\d+ s old/)
    await weir.serve(weir.port)
    await first.page.getByRole('alert').getByText('weir open').waitFor()
    // The same document: only the fragment changes.
    await first.page.evaluate(() => (window.same = true))
    await first.page.goto(await weir.ticket())
    await first.page.locator('.link.live').waitFor()
    await first.page.getByRole('alert').waitFor({ state: 'detached' })
    assert.equal(await first.page.evaluate(() => window.same), true)
    assert.ok(await radio(first, 'practice-lite', 'full').isChecked(), 'the mode was kept')
    await weir.turn('ses-after', [user('hello')])
    await first.page.getByRole('button', { name: 'ses-after' }).waitFor()
  })

  test('neither the policy nor the page complained', () => {
    // The browser itself reports requests that found nobody or were refused; those were meant.
    const meant = /Failed to load resource/
    for (const { complaints } of [first, second]) assert.deepEqual(complaints.filter((text) => !meant.test(text)), [])
  })
})
