/**
 * The built page with an invented program behind it, for working on the page and for looking at it in a browser:
 *
 *     node mock/server.mjs [PORT] [empty]      then open http://127.0.0.1:PORT/#key=mock
 *
 * **Invariant**: it sends the policy `default-src 'self'`, so what works here works behind the real endpoint.
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { world } from './world.mjs'

const [port = '0', kind = 'full'] = process.argv.slice(2)
const dist = fileURLToPath(new URL('../dist', import.meta.url))
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy())
})

async function answer(request, response) {
  const path = new URL(request.url, 'http://localhost').pathname
  response.setHeader('content-security-policy', "default-src 'self'")
  response.setHeader('x-content-type-options', 'nosniff')
  if (path === '/api') {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const [status, body] = api(request.headers.authorization, Buffer.concat(chunks).toString())
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    return
  }
  const file = join(dist, normalize(path === '/' ? '/index.html' : path))
  const content = await readFile(file).catch(() => null)
  if (content === null) response.writeHead(404).end()
  else response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' }).end(content)
}

const refusal = (message) => ({ error: { message } })
const facts = world(kind, Date.now())

function api(authorization, text) {
  if (authorization !== 'Bearer mock') return [401, refusal('This needs the control key.')]
  const command = JSON.parse(text)
  switch (command.command) {
    case 'status':
      return [200, { ...facts.status, base_url: `http://127.0.0.1:${server.address().port}/v1` }]
    case 'models':
      return [200, { models: facts.models }]
    case 'accounts':
      return [200, { accounts: facts.accounts }]
    case 'turns':
      return [200, { turns: facts.turns.slice(0, command.limit) }]
    case 'set_mode': {
      const row = facts.models.find(({ model }) => model === command.model)
      if (!row) return [404, refusal(`No model is called ${command.model}.`)]
      row.mode = command.mode
      row.dialect = command.mode === 'auto' ? (row.lite_in_catalog ? 'lite' : 'full') : command.mode
      row.reason = command.mode === 'auto' ? 'the catalog decides' : 'set by you'
      return [200, { model: row }]
    }
    default:
      return [400, refusal(`There is no command ${command.command}.`)]
  }
}

server.listen(Number(port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/#key=mock`)
})
