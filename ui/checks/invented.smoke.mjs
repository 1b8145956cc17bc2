/**
 * The page in a real browser with an invented program behind it, under the strictest content policy: what a program
 * that runs for seconds cannot show, such as two hundred turns, a burst, every state of an account.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { serve } from '../mock/server.mjs'
import { turn } from '../mock/world.mjs'
import { browser } from './browser.mjs'
import { accessible, fits, open } from './page.mjs'

const LIMIT = { timeout: 120_000 }

const inFlight = (page, count) => page.locator('dl > div', { hasText: `In flight${count}` }).waitFor()

describe('the page with an invented program', () => {
  let chromium
  before(async () => {
    chromium = await browser()
  }, LIMIT)
  after(() => chromium?.close())

  /** A page with an invented program behind it, for as long as the test lasts. */
  async function show(t, { kind, ...options } = {}) {
    const mock = await serve({ kind })
    t.after(() => mock.close())
    const { close, ...opened } = await open(chromium, mock.url, options)
    t.after(close)
    return { mock, ...opened }
  }

  for (const kind of ['full', 'empty']) {
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [1280, 360]) {
        const what = `${kind}, ${colorScheme}, ${width} wide`
        test(`${what}: no serious finding, nothing sticks out, no complaint`, LIMIT, async (t) => {
          const { page, complaints } = await show(t, { kind, colorScheme, viewport: { width, height: 800 } })
          await page.getByText(kind === 'full' ? '3 at once' : 'No turn yet').first().waitFor()
          if (kind === 'full') await page.locator('[data-turn]').first().click()
          // The narrow form differs in place, not in colour.
          if (width === 1280 || colorScheme === 'dark') await accessible(page, what)
          await fits(page, what)
          assert.deepEqual(complaints, [])
        })
      }
    }
  }

  test('a burst moves nothing that is being read, and the focus stays', LIMIT, async (t) => {
    const { mock, page } = await show(t)
    const name = await page.locator('[data-turn]').nth(40).getAttribute('data-turn')
    const reading = page.locator(`[data-turn="${name}"]`)
    await reading.focus()
    const top = () => reading.evaluate((element) => Math.round(element.getBoundingClientRect().top))
    const before = await top()

    // What is there changes: numbers come, calls come back, a turn fails. Nothing may move at all.
    await page.evaluate(() => {
      window.moved = []
      new PerformanceObserver((list) => {
        for (const { sources } of list.getEntries()) {
          for (const { node, previousRect, currentRect } of sources) {
            // A text may grow by a fraction of a pixel where it stands.
            if (Math.abs(previousRect.x - currentRect.x) < 1 && Math.abs(previousRect.y - currentRect.y) < 1) continue
            window.moved.push(`${node?.textContent ?? node} from ${JSON.stringify(previousRect)} to ${JSON.stringify(currentRect)}`)
          }
        }
      }).observe({ type: 'layout-shift' })
    })
    const known = mock.facts.turns.slice(0, 100)
    for (let round = 0; round < 20; round += 1) {
      for (const old of known.slice(round * 5, round * 5 + 5)) {
        mock.change({
          turns: [{ ...old, output_tokens: 100_000 + round, moves: 1, outcome: round % 2 ? 'failed' : 'incomplete', error_message: 'A sentence that is rather long and says why this turn failed.' }],
          status: { ...mock.facts.status, in_flight: round },
        })
      }
    }
    mock.change({ status: { ...mock.facts.status, in_flight: 77 } })
    await inFlight(page, '77')
    assert.deepEqual(await page.evaluate(() => window.moved), [])
    assert.equal(await top(), before)

    // New turns come at the top of the list; what is being read stays in its place.
    for (let number = 0; number < 30; number += 1) mock.change({ turns: [turn(`ses_fresh_${number}`, null, Date.now(), 10, 'full', number)] })
    mock.change({ status: { ...mock.facts.status, in_flight: 78 } })
    await inFlight(page, '78')
    assert.ok(Math.abs((await top()) - before) <= 1, 'what is being read has moved')
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.turn), name)

    // Without the focus too, and in an engine that does nothing of the kind by itself.
    await reading.blur()
    for (let number = 0; number < 10; number += 1) mock.change({ turns: [turn(`ses_later_${number}`, null, Date.now(), 10, 'full', number)] })
    mock.change({ status: { ...mock.facts.status, in_flight: 79 } })
    await inFlight(page, '79')
    assert.ok(Math.abs((await top()) - before) <= 1, 'what is being read has moved without the focus')
  })

  test('ten thousand changes in a row end in the last one', LIMIT, async (t) => {
    const { mock, page, complaints } = await show(t)
    await page.getByText('3 at once').first().waitFor()
    const [first] = mock.facts.turns
    for (let number = 1; number <= 10_000; number += 1) {
      mock.change({ turns: [{ ...first, output_tokens: number }], status: { ...mock.facts.status, in_flight: number } })
    }
    await inFlight(page, '10,000')
    assert.equal(await page.locator(`[data-turn="${first.id}"]`).count(), 1)
    assert.equal(await page.locator('[data-turn]').count(), 200)
    // The page still hears its user.
    await page.getByRole('radio', { name: 'lite' }).first().check({ force: true })
    await page.getByText('practice-full is set to lite: the next turn goes out lite.').waitFor()
    assert.deepEqual(complaints, [])
  })

  test('the keyboard alone reaches everything', LIMIT, async (t) => {
    const { page } = await show(t)
    await page.getByText('3 at once').first().waitFor()
    const focused = () => page.evaluate(() => document.activeElement.dataset.turn || document.activeElement.value || document.activeElement.textContent.trim())
    const tab = async () => {
      await page.keyboard.press('Tab')
      return focused()
    }
    assert.equal(await tab(), 'Copy')
    assert.equal(await tab(), 'auto')
    await page.keyboard.press('ArrowRight')
    await page.getByText('practice-full is set to lite').waitFor()
    assert.equal(await focused(), 'lite')
    for (const mode of ['auto', 'full', 'lite']) assert.equal(await tab(), mode)
    const first = await tab()
    assert.equal(await page.locator('[data-turn]').first().getAttribute('data-turn'), first)
    await page.keyboard.press('Enter')
    await page.getByText('Commit point').waitFor()
    await page.keyboard.press('ArrowDown')
    assert.notEqual(await focused(), first)
  })

  test('a page that was put out says how to get in again, and keeps what it shows', LIMIT, async (t) => {
    const { mock, page } = await show(t)
    await page.getByText('3 at once').first().waitFor()
    mock.forget()
    mock.cut()
    await page.getByRole('alert').getByText('weir open').waitFor()
    assert.ok(await page.getByText('3 at once').first().isVisible())
    await accessible(page, 'put out')
  })
})
