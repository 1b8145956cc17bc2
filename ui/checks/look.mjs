/**
 * Takes pictures of the page with the invented program behind it, in both schemes, wide and narrow: into `mock/out`.
 *
 *     node checks/look.mjs
 */
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { serve } from '../mock/server.mjs'
import { browser } from './browser.mjs'

const out = fileURLToPath(new URL('../mock/out/', import.meta.url))
const sizes = { wide: { width: 1280, height: 860 }, narrow: { width: 360, height: 780 } }

await mkdir(out, { recursive: true })
const seen = await browser()
const mock = await serve()
const empty = await serve({ kind: 'empty' })
for (const colorScheme of ['light', 'dark']) {
  for (const [name, viewport] of Object.entries(sizes)) {
    const page = await seen.newPage({ colorScheme, viewport })
    await page.goto(mock.url)
    await page.getByText('3 at once').first().waitFor()
    await page.screenshot({ path: `${out}${name}-${colorScheme}.png` })
    await page.locator('[data-turn]').first().click()
    await page.locator('.failed').first().scrollIntoViewIfNeeded()
    await page.screenshot({ path: `${out}${name}-${colorScheme}-detail.png`, fullPage: false })
    await page.close()
    const bare = await seen.newPage({ colorScheme, viewport })
    await bare.goto(empty.url)
    await bare.getByText('No turn yet').waitFor()
    await bare.screenshot({ path: `${out}${name}-${colorScheme}-empty.png` })
    await bare.close()
  }
}
await seen.close()
await mock.close()
await empty.close()
console.log(out)
