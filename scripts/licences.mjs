/**
 * Are all licences of what Weir ships on the list? Asks Cargo for the crates and npm's lock file for the page.
 *
 * A licence expression is allowed when its OR has an allowed side and both sides of its AND are allowed.
 *
 * **Invariant**: a package without a licence, or with one that cannot be read, is refused, never skipped.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const allowed = new Set([
  'MIT',
  'Apache-2.0',
  'Apache-2.0 WITH LLVM-exception',
  'BSD-2-Clause',
  'BSL-1.0',
  'BSD-3-Clause',
  'ISC',
  'Zlib',
  'Unicode-3.0',
  'CDLA-Permissive-2.0',
  // File-level copyleft: our use of unmodified crates asks nothing of our own files.
  'MPL-2.0',
])

/** Whether the expression can be satisfied with allowed licences. Throws on what it cannot read. */
export function isAllowed(expression) {
  const words = expression.replaceAll('/', ' OR ').match(/\(|\)|[^\s()]+/g) ?? []
  let at = 0
  const either = () => {
    let holds = both()
    while (words[at] === 'OR') {
      at += 1
      holds = both() || holds
    }
    return holds
  }
  const both = () => {
    let holds = one()
    while (words[at] === 'AND') {
      at += 1
      holds = one() && holds
    }
    return holds
  }
  const one = () => {
    let word = words[at++]
    if (word === '(') {
      const holds = either()
      if (words[at++] !== ')') throw new Error('a bracket is not closed')
      return holds
    }
    if (word === undefined || word === ')' || word === 'OR' || word === 'AND') throw new Error('a licence is missing')
    if (words[at] === 'WITH') {
      word = `${word} WITH ${words[at + 1]}`
      at += 2
    }
    return allowed.has(word)
  }
  const holds = either()
  if (at !== words.length) throw new Error(`cannot read ${words[at]}`)
  return holds
}

function selfTest() {
  const cases = [
    ['MIT', true],
    ['GPL-3.0-only', false],
    ['MIT OR GPL-3.0-only', true],
    ['MIT AND GPL-3.0-only', false],
    ['MIT/Apache-2.0', true],
    ['(MIT OR GPL-2.0) AND ISC', true],
    ['GPL-2.0 OR (MIT AND AGPL-3.0)', false],
    ['Apache-2.0 WITH LLVM-exception', true],
    ['Apache-2.0 WITH Some-exception', false],
  ]
  for (const [expression, expected] of cases) {
    if (isAllowed(expression) !== expected) throw new Error(`the reading of "${expression}" is wrong`)
  }
}

function crates() {
  const text = execFileSync('cargo', ['metadata', '--quiet', '--locked', '--format-version', '1'], {
    encoding: 'utf8',
    maxBuffer: 256 << 20,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(text).packages.map(({ name, version, license }) => ({ name, version, license }))
}

/** What the page ships; tools that only build it carry `dev` in the lock file. */
function packages() {
  const lock = JSON.parse(readFileSync(new URL('../ui/package-lock.json', import.meta.url), 'utf8'))
  return Object.entries(lock.packages)
    .filter(([, { dev, devOptional }]) => !dev && !devOptional)
    .map(([path, { name, version, license }]) => ({ name: name ?? path, version, license }))
}

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
selfTest()
const all = [...crates(), ...packages()]
const refused = all.filter(({ license }) => {
  try {
    return !license || !isAllowed(license)
  } catch {
    return true
  }
})
for (const { name, version, license } of refused) console.error(`${name} ${version}: ${license ?? 'no licence'}`)
console.log(`${all.length - refused.length} passed, ${refused.length} failed`)
process.exit(refused.length === 0 ? 0 : 1)
