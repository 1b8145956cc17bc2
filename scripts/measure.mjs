// What Weir costs while it does nothing: sizes of the programs, start to ready, memory, and processor time over five
// minutes. Linux only, because it reads /proc. Prints one table; each figure says how it was taken.
//
//   node scripts/measure.mjs [--profile release|debug] [--minutes 5] [--headless-only]
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    profile: { type: 'string', default: 'release' },
    minutes: { type: 'string', default: '5' },
    'headless-only': { type: 'boolean', default: false },
  },
})
const target = join(process.env.CARGO_TARGET_DIR ?? 'target', values.profile)
const idle = Number(values.minutes) * 60_000
const TICKS_PER_S = 100
const STARTS = 11
const rows = []
const pause = (ms) => new Promise((done) => setTimeout(done, ms))
const MiB = (bytes) => `${(bytes / 1024 / 1024).toFixed(1)} MiB`

/** Resident memory in bytes. */
function rss(pid) {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+) kB/)
  return Number(line[1]) * 1024
}

/** Processor time in seconds since the start. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
}

/** A process and all that it started. */
function family(pid) {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')
        return [[Number(name), Number(fields[1])]]
      } catch {
        return [] // It ended meanwhile.
      }
    })
  const all = [pid]
  for (const known of all) all.push(...parents.filter(([, parent]) => parent === known).map(([child]) => child))
  return all
}

async function until(condition, what) {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await condition()) return
    await pause(100)
  }
  throw new Error(`${what} did not come true within a minute`)
}

/** Starts the headless program and returns it with the milliseconds until its ready line. */
async function serve(folder) {
  const begun = performance.now()
  const child = spawn(join(target, 'weir'), ['serve', '--practice', '--json', '--port', '0', '--data', folder])
  await new Promise((ready, failed) => {
    child.stdout.once('data', ready)
    child.once('exit', (code) => failed(new Error(`weir serve ended with ${code}`)))
  })
  return { child, ms: performance.now() - begun }
}

async function end(child) {
  const over = new Promise((done) => child.once('exit', done))
  child.kill('SIGTERM')
  await over
}

async function rest(name, pid, rows) {
  const before = cpu(pid)
  await pause(idle)
  rows.push([`${name}: processor time over ${values.minutes} idle minutes`, `${(cpu(pid) - before).toFixed(2)} s`])
  rows.push([`${name}: resident memory after them`, MiB(rss(pid))])
}

async function headless() {
  const rows = []
  const folder = mkdtempSync(join(tmpdir(), 'weir-measure-'))
  const times = []
  for (let n = 0; n < STARTS; n += 1) {
    const { child, ms } = await serve(folder)
    times.push(ms)
    await end(child)
  }
  times.sort((a, b) => a - b)
  const [low, median, high] = [times[0], times[(STARTS - 1) / 2], times[STARTS - 1]].map((ms) => ms.toFixed(0))
  rows.push([`weir: start to ready, median of ${STARTS} (least to most)`, `${median} ms (${low}–${high})`])
  rmSync(folder, { recursive: true })
  return rows
}

async function headlessAtRest() {
  const rows = []
  const folder = mkdtempSync(join(tmpdir(), 'weir-measure-'))
  const { child } = await serve(folder)
  await rest('weir', child.pid, rows)
  await end(child)
  rmSync(folder, { recursive: true })
  return rows
}

/** Sets up a panel that holds a tray and nothing else; returns the command that starts it and waits for the tray. */
function panel(folder) {
  const place = join(folder, 'config/xfce4/xfconf/xfce-perchannel-xml')
  mkdirSync(place, { recursive: true })
  const one = '<property name="plugin-ids" type="array"><value type="int" value="1"/></property>'
  writeFileSync(
    join(place, 'xfce4-panel.xml'),
    `<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array"><value type="int" value="1"/><property name="panel-1" type="empty">${one}</property></property>
  <property name="plugins" type="empty"><property name="plugin-1" type="string" value="systray"/></property>
</channel>
`,
  )
  return 'xfce4-panel --disable-wm-check & gdbus wait --session --timeout 60 org.kde.StatusNotifierWatcher;'
}

/** The desktop on a display without a screen, with a session bus and a home of its own. */
async function desktop(hidden) {
  const rows = []
  const folder = mkdtempSync(join(tmpdir(), 'weir-measure-'))
  const program = join(target, 'weir-desktop')
  const args = ['--practice', '--port', '0', '--data', folder, ...(hidden ? ['--hidden'] : [])]
  // Without a tray the window opens, so the program that is measured without one needs a panel.
  const first = hidden ? panel(folder) : ''
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: join(folder, 'config'), XDG_RUNTIME_DIR: folder, GDK_BACKEND: 'x11', NO_AT_BRIDGE: '1' }
  const run = ['-a', '-n', hidden ? '120' : '160', 'dbus-run-session', '--', 'sh', '-c', `${first} exec "$0" "$@"`]
  const shell = spawn('xvfb-run', [...run, program, ...args], { env, detached: true, stdio: 'ignore' })
  const exe = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
    } catch {
      return ''
    }
  }
  let pid
  await until(() => (pid = family(shell.pid).find((one) => exe(one).startsWith('weir-desktop'))) !== undefined, 'the desktop')
  await until(() => readdirSync(folder).includes('running.json'), 'its endpoint')
  const name = hidden ? 'weir-desktop in the tray' : 'weir-desktop with its window'
  await pause(10_000)
  const helpers = family(pid).filter((one) => exe(one).startsWith('WebKit'))
  rows.push([`${name}: resident memory, program`, MiB(rss(pid))])
  if (helpers.length > 0) rows.push([`${name}: resident memory, web processes`, MiB(helpers.map(rss).reduce((a, b) => a + b, 0))])
  await rest(name, pid, rows)
  process.kill(pid, 'SIGTERM')
  await new Promise((done) => shell.once('exit', done))
  // What shared the session bus may still be writing its last words.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  return rows
}

rows.push(['weir: size of the program', MiB(statSync(join(target, 'weir')).size)])
if (!values['headless-only']) rows.push(['weir-desktop: size of the program', MiB(statSync(join(target, 'weir-desktop')).size)])
rows.push(...(await headless()))
// Programs that do nothing do not disturb each other, so all of them rest at the same time.
const atRest = [headlessAtRest()]
if (!values['headless-only']) atRest.push(desktop(true), desktop(false))
rows.push(...(await Promise.all(atRest)).flat())
console.log(`Measured ${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0].model}, profile ${values.profile}`)
const width = Math.max(...rows.map(([what]) => what.length))
for (const [what, figure] of rows) console.log(`${what.padEnd(width)}  ${figure}`)
