/**
 * The built page with an invented program behind it, for working on the page and for looking at it in a browser:
 *
 *     node mock/server.mjs [PORT] [empty]      then open the address that it prints
 *
 * Its ticket stays good, so that the address can be opened again. Checks import `serve` and change what it tells.
 *
 * **Invariant**: it sends the policy `default-src 'self'`, so what works here works behind the real endpoint.
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { model, world } from './world.mjs'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
const KEY = 'session_mock'

export async function serve({ port = 0, kind = 'full' } = {}) {
  const facts = world(kind, Date.now())
  const watchers = new Set()
  let number = 1
  let open = true
  const epoch = 'mock'

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${server.address().port}`
  facts.status.base_url = `${origin}/v1`

  /** Takes a change in and tells those who watch. */
  function change({ turns = [], ...parts }) {
    Object.assign(facts, parts)
    for (const turn of turns) {
      const at = facts.turns.findIndex(({ id }) => id === turn.id)
      if (at < 0) facts.turns.unshift(turn)
      else facts.turns[at] = turn
    }
    number += 1
    const nothing = { status: null, accounts: null, models: null, today: null }
    const text = event({ kind: 'delta', epoch, number, after: number - 1, ...nothing, ...parts, turns })
    for (const watcher of watchers) watcher.write(text)
  }

  async function answer(request, response) {
    const { pathname } = new URL(request.url, origin)
    response.setHeader('content-security-policy', "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
    response.setHeader('x-content-type-options', 'nosniff')
    if (!pathname.startsWith('/api')) return file(pathname, response)
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    if (pathname === '/api/enter') {
      if (open && JSON.parse(text).ticket === 'mock') return json(response, 200, { key: KEY })
      return json(response, 401, refusal('This address was used before or is too old. Run `weir open` for a new one.'))
    }
    if (!open || request.headers.authorization !== `Bearer ${KEY}`) return json(response, 401, refusal('This key is not the one.'))
    if (pathname === '/api') return json(response, ...command(JSON.parse(text)))
    if (pathname !== '/api/events') return json(response, 404, refusal('There is nothing here.'))
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.write(event({ kind: 'snapshot', epoch, number, ...facts, turns: facts.turns.slice(0, 200) }))
    watchers.add(response)
    response.on('close', () => watchers.delete(response))
  }

  function command({ command, model: name, mode }) {
    if (command !== 'set_mode') return [400, refusal(`The invented program has no command ${command}.`)]
    const old = facts.models.find(({ model }) => model === name)
    if (!old) return [400, refusal(`No account of the pool offers ${name}.`)]
    const row = model(name, old.display_name, mode, old.lite_in_catalog, old.accounts)
    change({ models: facts.models.map((other) => (other === old ? row : other)) })
    return [200, { model: row }]
  }

  return {
    url: `${origin}/#ticket=mock`,
    origin,
    facts,
    change,
    /** Ends all streams; they may come back. */
    cut: () => watchers.forEach((watcher) => watcher.destroy()),
    /** Knows no key and no ticket any more. */
    forget: () => (open = false),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}

async function file(path, response) {
  const name = join(dist, normalize(path === '/' ? '/index.html' : path))
  const content = await readFile(name).catch(() => null)
  if (content === null) response.writeHead(404).end()
  else response.writeHead(200, { 'content-type': types[extname(name)] ?? 'application/octet-stream' }).end(content)
}

const refusal = (message) => ({ error: { message } })
const event = (message) => `data: ${JSON.stringify(message)}\n\n`

function json(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port = '0', kind = 'full'] = process.argv.slice(2)
  const mock = await serve({ port: Number(port), kind })
  console.log(mock.url)
}
