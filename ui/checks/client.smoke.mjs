/**
 * The real OpenCode in the middle of its work while somebody flips a mode in the page: the turn that was sent stays as it
 * went out, the next one of the same conversation shows the choice.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { assertFull, assertLite } from '../../tests/e2e/harness/dialect.mjs'
import { withEvidence } from '../../tests/e2e/harness/evidence.mjs'
import { runOpenCode } from '../../tests/e2e/harness/opencode.mjs'
import { turns } from '../../tests/e2e/harness/record.mjs'
import { snippet } from '../../tests/e2e/harness/snippets.mjs'
import { Weir } from '../../tests/e2e/harness/weir.mjs'
import { browser } from './browser.mjs'
import { open } from './page.mjs'

const LIMIT = { timeout: 240_000 }
const MODEL = 'practice-lite'

/** A place that a command of OpenCode asks and gets no answer from until the gate is opened. */
async function gate(t) {
  let heard
  const asked = new Promise((resolve) => (heard = resolve))
  const server = createServer((_, answer) => heard(() => answer.end('open')))
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return { address: `http://127.0.0.1:${server.address().port}/`, asked }
}

/** One call of the shell, and an answer once it came back. */
function asks(address) {
  const args = JSON.stringify({ command: `curl -sS ${address}`, description: 'waits for the gate' })
  return [
    'pace = 0.0',
    '[[rule]]',
    'when = { prompt = "Wait at the gate", tool = "bash" }',
    `reply = { calls = [{ name = "bash", arguments = ${JSON.stringify(args)} }], text = "The gate is open." }`,
    '',
  ].join('\n')
}

test('a mode that is flipped in the page while OpenCode works is in its next turn', LIMIT, async (t) => {
  const { address, asked } = await gate(t)
  const weir = await Weir.start({ scenario: asks(address) })
  t.after(() => weir.stop())
  const chromium = await browser()
  t.after(() => chromium.close())
  const { page, complaints } = await open(chromium, (await weir.command('open', '--print')).trim())
  const radio = (mode) => page.getByRole('group', { name: `Serving mode of ${MODEL}` }).getByRole('radio', { name: mode })
  await radio('auto').waitFor({ state: 'attached' })

  await withEvidence(t, weir, async (saw) => {
    const config = await snippet('opencode.json', weir)
    const work = runOpenCode({ config, model: MODEL, prompt: 'Wait at the gate, please.' })
    // A run that ends before it asks is told below.
    const letIn = await Promise.race([asked, work.then(() => null)])
    // The call was made by the first turn, which is therefore over, and nothing more is asked before the gate opens.
    await radio('full').check({ force: true })
    await page.getByText(`${MODEL} is set to full: the next turn goes out full.`).waitFor()
    letIn?.()
    const run = saw(await work)
    assert.equal(run.code, 0)
    assert.match(run.answer, /The gate is open/)

    const { parent } = turns(await weir.recordSince(0, (all) => turns(all).parent.length === 2))
    assertLite([parent[0]])
    assertFull([parent[1]], { parallelToolCalls: undefined })
    const rows = JSON.parse(await weir.command('turns', '--json')).turns.filter(({ conversation }) => conversation === parent[0].conversation)
    const inOrder = rows.toSorted((a, b) => a.started_at - b.started_at).map(({ dialect }) => dialect)
    assert.deepEqual([inOrder[0], inOrder.at(-1)], ['lite', 'full'])
    // And the person who flipped it sees it.
    await page.locator('[data-turn]').first().waitFor()
  })
  assert.deepEqual(complaints, [])
})
