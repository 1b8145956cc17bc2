import { expect, test, vi } from 'vitest'
import { datas } from './sse'

function stream(...parts: string[]): ReadableStream<Uint8Array> {
  const bytes = parts.map((part) => new TextEncoder().encode(part))
  return new ReadableStream({
    pull(controller) {
      const next = bytes.shift()
      if (next) controller.enqueue(next)
      else controller.close()
    },
  })
}

async function read(...parts: string[]): Promise<string[]> {
  const all: string[] = []
  for await (const data of datas(stream(...parts), () => undefined)) all.push(data)
  return all
}

const TEXT = ': hello\r\n\r\ndata: {"a":1}\r\n\r\nevent: x\ndata:two\ndata: lines\n\ndata: é\r\r'

test('each event gives its data; comments and other fields give none', async () => {
  expect(await read(TEXT)).toEqual(['{"a":1}', 'two\nlines'])
  // A lone CR at the very end may be half of a line end, so the last event waits for what follows.
  expect(await read(TEXT, '\n')).toEqual(['{"a":1}', 'two\nlines', 'é'])
})

test('how the bytes were cut changes nothing', async () => {
  const bytes = new TextEncoder().encode(`${TEXT}\n`)
  for (let size = 1; size < 12; size += 1) {
    const cut: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += size) cut.push(bytes.slice(at, at + size))
    const all: string[] = []
    const whole = new ReadableStream<Uint8Array>({
      pull(controller) {
        const next = cut.shift()
        if (next) controller.enqueue(next)
        else controller.close()
      },
    })
    for await (const data of datas(whole, () => undefined)) all.push(data)
    expect(all, `cut every ${size} bytes`).toEqual(['{"a":1}', 'two\nlines', 'é'])
  }
})

test('an event that was cut off is not given', async () => {
  expect(await read('data: whole\n\ndata: half\n')).toEqual(['whole'])
})

test('whoever stops reading leaves no connection behind', async () => {
  const cancel = vi.fn()
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new TextEncoder().encode('data: x\n\n')), cancel })
  for await (const data of datas(endless, () => undefined)) if (data) break
  expect(cancel).toHaveBeenCalledOnce()
})
