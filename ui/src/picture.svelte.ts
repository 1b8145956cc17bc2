/**
 * What the page knows: the last answers of the program, and what went wrong since. It asks again every two seconds
 * while somebody can see it.
 *
 * **Invariant**: an answer that was asked for before the user chose a mode never overwrites that choice.
 */
import type { Account, Mode, Model, Status, Turn } from './contract'
import { CallError, type Call } from './host'

const PAUSE_MS = 2_000
const TURNS = 50

export class Picture {
  status = $state.raw<Status | null>(null)
  models = $state.raw<Model[] | null>(null)
  accounts = $state.raw<Account[] | null>(null)
  turns = $state.raw<Turn[] | null>(null)
  /** Why the last round failed, or null when it did not. */
  trouble = $state.raw<CallError | null>(null)
  /** The model whose mode is on its way to the program, and the mode. */
  choosing = $state.raw<{ model: string; mode: Mode } | null>(null)
  /** What became of the last choice, as a sentence. */
  said = $state.raw<{ text: string; bad: boolean } | null>(null)
  /** Unix milliseconds of the last complete round; the ages on the page refer to it. */
  heard = $state(0)
  now = $state(Date.now())

  #call: Call
  #choices = 0

  constructor(call: Call) {
    this.#call = call
  }

  /** Speaks to the program with another key from now on. */
  reconnect(call: Call): void {
    this.#call = call
    this.trouble = null
    void this.refresh()
  }

  /** One round of questions. Never throws: what went wrong becomes `trouble`. */
  async refresh(): Promise<void> {
    const call = this.#call
    const choices = this.#choices
    try {
      const [status, models, accounts, turns] = await Promise.all([
        call({ command: 'status' }),
        call({ command: 'models' }),
        call({ command: 'accounts' }),
        call({ command: 'turns', limit: TURNS }),
      ])
      if (call !== this.#call) return
      this.status = status
      if (choices === this.#choices && this.choosing === null) this.models = models.models
      this.accounts = accounts.accounts
      this.turns = turns.turns
      this.trouble = null
      this.heard = Date.now()
    } catch (cause) {
      if (call !== this.#call) return
      this.trouble = asCallError(cause)
    } finally {
      this.now = Date.now()
    }
  }

  /** Sets the mode of one model; the row changes when the program has said yes. */
  async choose(model: string, mode: Mode): Promise<void> {
    this.#choices += 1
    this.choosing = { model, mode }
    this.said = null
    try {
      const { model: row } = await this.#call({ command: 'set_mode', model, mode })
      this.models = this.models?.map((old) => (old.model === row.model ? row : old)) ?? null
      this.said = { text: outcome(row), bad: false }
    } catch (cause) {
      this.said = { text: `${model} stays as it is. ${asCallError(cause).message}`, bad: true }
    } finally {
      this.choosing = null
    }
  }

  /** Asks again and again while the page can be seen. Returns the function that ends it. */
  watch(page: Document): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined
    let over = false
    let busy = false
    const round = async () => {
      clearTimeout(timer)
      if (over || busy || page.hidden) return
      busy = true
      await this.refresh()
      busy = false
      if (!over) timer = setTimeout(() => void round(), PAUSE_MS)
    }
    const seen = () => void round()
    page.addEventListener('visibilitychange', seen)
    seen()
    return () => {
      over = true
      clearTimeout(timer)
      page.removeEventListener('visibilitychange', seen)
    }
  }
}

function outcome({ model, mode, dialect }: Model): string {
  const next = dialect === null ? 'no account can serve it now' : `the next turn goes out ${dialect}`
  return `${model} is set to ${mode}: ${next}.`
}

function asCallError(cause: unknown): CallError {
  return cause instanceof CallError ? cause : new CallError('refused', 'The answer of the program could not be read.')
}
