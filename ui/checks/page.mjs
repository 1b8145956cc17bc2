/** What every check asks of a page, whatever program is behind it. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** A page that remembers what the browser complained about. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
  const page = await context.newPage()
  const complaints = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  return { page, complaints, close: () => context.close() }
}

/** No finding of axe that is serious or critical. It is run apart from the page's policy, which stays as it is. */
export async function accessible(page, what) {
  const cdp = await page.context().newCDPSession(page)
  const { readFile } = await import('node:fs/promises')
  await cdp.send('Runtime.evaluate', { expression: await readFile(axe, 'utf8') })
  const { result, exceptionDetails } = await cdp.send('Runtime.evaluate', {
    expression: `axe.run().then(({ violations }) => JSON.stringify(violations))`,
    awaitPromise: true,
    returnByValue: true,
  })
  assert.equal(exceptionDetails, undefined, 'axe could not run')
  const findings = JSON.parse(result.value)
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`)
  assert.deepEqual(findings, [], what)
}

/** Nothing is wider than the page. */
export async function fits(page, what) {
  const { inner, outer } = await page.evaluate(() => ({ inner: document.documentElement.scrollWidth, outer: window.innerWidth }))
  assert.ok(inner <= outer, `${what}: ${inner} wide in ${outer}`)
}
