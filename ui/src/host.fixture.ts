/** A program for tests: the test speaks into its stream, and it answers commands as the test says. */
import type { Delta, Message, Mode, ModelRow, Snapshot, Status } from './contract'
import { CallError, type Asked, type Host, type Position } from './host'

export const status: Status = { version: '0.1.0', base_url: 'http://127.0.0.1:8788/v1', practice: true, started_at: 0, in_flight: 0 }

export const model = (mode: Mode): ModelRow => ({
  model: 'practice-lite',
  display_name: 'Practice, Lite',
  mode,
  dialect: mode === 'full' ? 'full' : 'lite',
  reason: mode === 'auto' ? 'auto: the catalog asks for Lite' : `${mode}: set by the user for this model`,
  auto_dialect: 'lite',
  lite_in_catalog: true,
  accounts: 3,
})

const nothing: Snapshot = {
  epoch: 'e',
  number: 1,
  status,
  accounts: [],
  models: [],
  today: { turns: 0, reported: 0, input_tokens: null, cached_tokens: null, output_tokens: null },
  turns: [],
}

export class Program implements Host {
  readonly asked: Asked[] = []
  readonly watched: (Position | null)[] = []
  /** What becomes of the next commands. */
  answer: (command: Asked) => Promise<unknown> = ({ mode }) => Promise.resolve({ model: model(mode) })
  #number = 1
  #hear: (message: Message) => void = () => undefined
  #fail: (cause: CallError) => void = () => undefined

  call<C extends Asked>(command: C): Promise<never> {
    this.asked.push(command)
    return this.answer(command) as Promise<never>
  }

  watch(after: Position | null, hear: (message: Message) => void, stop: AbortSignal): Promise<void> {
    this.watched.push(after)
    return new Promise((resolve, reject) => {
      this.#hear = hear
      this.#fail = reject
      stop.addEventListener('abort', () => resolve())
    })
  }

  snapshot(known: Partial<Snapshot> = {}): void {
    this.#number = known.number ?? this.#number
    this.#hear({ kind: 'snapshot', ...nothing, number: this.#number, ...known })
  }

  delta(known: Partial<Delta> = {}): void {
    this.#number += 1
    const same = { status: null, accounts: null, models: null, today: null, turns: [] }
    this.#hear({ kind: 'delta', epoch: 'e', number: this.#number, after: this.#number - 1, ...same, ...known })
  }

  fail(kind: CallError['kind'] = 'unreachable', message = 'The program does not answer.'): void {
    this.#fail(new CallError(kind, message))
  }
}
