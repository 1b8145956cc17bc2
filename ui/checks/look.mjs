/**
 * Takes pictures of the page with the invented program behind it, in both schemes, wide and narrow: into `mock/out`.
 * With `docs` the two that the README shows are taken anew.
 *
 *     node checks/look.mjs [docs]
 */
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { serve } from '../mock/server.mjs'
import { browser } from './browser.mjs'

const folder = (path) => fileURLToPath(new URL(path, import.meta.url))
const out = folder('../mock/out/')
const docs = process.argv[2] === 'docs' ? folder('../../docs/') : null
const sizes = { wide: { width: 1280, height: 1010 }, narrow: { width: 360, height: 780 } }

await mkdir(out, { recursive: true })
if (docs) await mkdir(docs, { recursive: true })
const chromium = await browser()
for (const colorScheme of ['light', 'dark']) {
  for (const [size, viewport] of Object.entries(sizes)) {
    for (const kind of ['full', 'empty']) {
      const mock = await serve({ kind, port: docs && kind === 'full' ? 8788 : 0 })
      const page = await chromium.newPage({ colorScheme, viewport })
      await page.goto(mock.url)
      await page.locator('.link.live').waitFor()
      const name = `${size}-${colorScheme}`
      if (kind === 'empty') {
        await page.screenshot({ path: `${out}${name}-empty.png` })
      } else {
        await page.screenshot({ path: `${out}${name}.png` })
        if (docs && size === 'wide') await page.screenshot({ path: `${docs}window-${colorScheme}.png` })
        const crossed = page.locator('.turn:has(.crossed) button').first()
        await crossed.click()
        await crossed.evaluate((button) => button.scrollIntoView({ block: 'start' }))
        await page.screenshot({ path: `${out}${name}-detail.png` })
        await mock.close()
        await page.getByText('Connection lost').waitFor()
        await page.screenshot({ path: `${out}${name}-lost.png` })
      }
      await page.close()
      await mock.close()
    }
  }
}
await chromium.close()
console.log(out)
