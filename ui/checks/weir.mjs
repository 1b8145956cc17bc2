/** The real program on a data folder of its own: started, asked, killed and started again, as a user would do it. */
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const run = promisify(execFile)

export function binary() {
  const target = process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, '../../target')
  const path = resolve(process.env.WEIR_BIN ?? join(target, 'debug/weir'))
  if (existsSync(path)) return path
  throw new Error(`There is no ${path}: build it with "cargo build -p weir" after the page, or name another in WEIR_BIN.`)
}

export class Weir {
  static async start() {
    const weir = new Weir()
    weir.path = binary()
    weir.data = await mkdtemp(join(tmpdir(), 'weir-page-'))
    await weir.serve(0)
    return weir
  }

  async serve(port) {
    this.child = spawn(this.path, ['serve', '--practice', '--json', '--port', String(port), '--data', this.data], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.ended = new Promise((end) => this.child.once('exit', end))
    const lines = createInterface({ input: this.child.stdout })
    const ready = await Promise.race([new Promise((line) => lines.once('line', line)), this.ended])
    if (typeof ready !== 'string') throw new Error(`weir serve ended with ${ready} before it was ready`)
    const { base_url, key } = JSON.parse(ready)
    Object.assign(this, { baseUrl: base_url, key, origin: new URL(base_url).origin, port: new URL(base_url).port })
  }

  /** What a command prints. */
  async command(...args) {
    const { stdout } = await run(this.path, ['--data', this.data, ...args])
    return stdout.trim()
  }

  /** An address of the page that is good once. */
  ticket() {
    return this.command('open', '--print')
  }

  async kill() {
    this.child.kill('SIGKILL')
    await this.ended
  }

  async remove() {
    await this.kill()
    await rm(this.data, { recursive: true })
  }

  /** One turn of a conversation; the items that the model answered with. */
  async turn(conversation, input, { model = 'practice-full', parent } = {}) {
    const answer = await fetch(`${this.baseUrl}/responses`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.key}`,
        'content-type': 'application/json',
        'x-session-id': conversation,
        ...(parent ? { 'x-parent-session-id': parent } : {}),
      },
      body: JSON.stringify({ model, input, tools: [TASK], tool_choice: 'auto', stream: true, store: false }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${answer.status} ${text}`)
    return text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)))
      .filter(({ type }) => type === 'response.output_item.done')
      .map(({ item }) => item)
  }
}

const TASK = {
  type: 'function',
  name: 'task',
  description: 'starts a subagent',
  strict: false,
  parameters: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
}

export const user = (text) => ({ role: 'user', content: [{ type: 'input_text', text }] })

/** A call as a client replays it, and its result. */
export const replay = ({ type, call_id, name, arguments: given }) => ({ type, call_id, name, arguments: given })
export const output = ({ call_id }) => ({ type: 'function_call_output', call_id, output: 'done' })
