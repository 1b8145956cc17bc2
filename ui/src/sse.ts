/**
 * The data of a `text/event-stream`, as the standard says it is to be read. `EventSource` cannot send a key, so the
 * stream is read from a fetch.
 *
 * **Invariant**: how the bytes were cut on their way changes nothing.
 */

/** The data of each event in order. `sign` is told of all bytes, comments too: they are a sign of life. */
export async function* datas(bytes: ReadableStream<Uint8Array>, sign: () => void): AsyncGenerator<string, void> {
  const reader = bytes.getReader()
  const decoder = new TextDecoder()
  const lines: string[] = []
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      sign()
      // A line may end in CR, LF or both. A CR at the very end waits for what follows it.
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
      rest = parts.pop() ?? ''
      for (const line of parts) {
        if (line !== '') {
          const data = /^data(?:: ?(.*))?$/s.exec(line)
          if (data) lines.push(data[1] ?? '')
        } else if (lines.length > 0) {
          yield lines.splice(0).join('\n')
        }
      }
    }
  } finally {
    // Also when the reader of this generator stops early: the connection is not left open behind it.
    await reader.cancel().catch(() => undefined)
  }
}
