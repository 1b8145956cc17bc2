/** The Chromium of this machine; nothing is downloaded. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'

const NAMES = ['chromium', 'google-chrome', 'chromium-browser']

export function browser() {
  const executablePath = found()
  if (!executablePath) throw new Error('There is no chromium; scripts/install-test-deps.sh brings it.')
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

function found() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
