/**
 * What the page shows: all that the program has said, and what went wrong since. Messages come faster than anybody can
 * look, so they are taken in at once and shown once per frame.
 *
 * **Invariant**: what is shown of models, accounts and turns comes from the event stream alone, whoever changed it.
 */
import type { AccountRow, Message, Mode, ModelRow, Status, Today, TurnView } from './contract'
import { Follow, type Listener } from './follow'
import { asCallError, type CallError, type Host, type Position } from './host'
import { after, type Known } from './known'

/** Calls a function soon, at most once per frame. Returns the function that takes it back. */
export type Soon = (show: () => void) => () => void

/** How often the page looks at the clock while a turn runs, while the stream is lost, and otherwise. */
const TICK_MS = { running: 500, lost: 1_000, calm: 15_000 }

/** How long a choice is shown as on its way after the program has said yes, if the stream does not bring it. */
const CONFIRM_MS = 1_000

export class Picture implements Listener {
  status = $state.raw<Status | null>(null)
  models = $state.raw<ModelRow[]>([])
  accounts = $state.raw<AccountRow[]>([])
  today = $state.raw<Today | null>(null)
  turns = $state.raw<TurnView[]>([])
  /** Whether there was ever a snapshot. */
  known = $state(false)
  /** Why nothing new is heard, or null while the stream lives. */
  trouble = $state.raw<CallError | null>(null)
  /** Unix milliseconds: when the stream was lost. */
  lostAt = $state(0)
  /** The choice on its way to the program. */
  choosing = $state.raw<{ model: string; mode: Mode } | null>(null)
  /** What became of the last choice, as a sentence. */
  said = $state.raw<{ text: string; bad: boolean } | null>(null)
  now = $state(Date.now())

  readonly #host: Host
  readonly #soon: Soon
  readonly #follow: Follow
  #heard: Known | null = null
  #shown: Known | null = null
  #position: Position | null = null
  #takeBack: (() => void) | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Choices go out one after another, or an older one could win. */
  #queue: Promise<void> = Promise.resolve()
  #answered = false

  constructor(host: Host, soon: Soon = nextFrame) {
    this.#host = host
    this.#soon = soon
    this.#follow = new Follow(host, this)
  }

  /** Follows the program until the returned function is called. */
  open(page: Document): () => void {
    const seen = () => {
      if (!page.hidden) this.again()
    }
    page.addEventListener('visibilitychange', seen)
    void this.#follow.run()
    return () => {
      page.removeEventListener('visibilitychange', seen)
      this.#follow.end()
      this.#takeBack?.()
      clearTimeout(this.#timer)
    }
  }

  /** Tries at once to reach the program, if it is out of reach. */
  again(): void {
    this.#follow.again()
  }

  position(): Position | null {
    return this.#position
  }

  hear(message: Message): boolean {
    const next = after(this.#heard, message)
    if (next === null) {
      this.#position = null
      return false
    }
    this.#heard = next
    this.#position = { epoch: next.epoch, number: next.number }
    this.#takeBack ??= this.#soon(() => this.#show())
    return true
  }

  lost(cause: CallError): void {
    // What was heard before is shown before.
    if (this.#takeBack) {
      this.#takeBack()
      this.#show()
    }
    if (this.trouble === null) this.lostAt = Date.now()
    this.trouble = cause
    this.choosing = null
    this.#tick()
  }

  /** Sets the mode of one model. The row changes when the stream says so. */
  choose(model: string, mode: Mode): Promise<void> {
    this.choosing = { model, mode }
    this.#answered = false
    this.said = null
    const before = this.#queue
    this.#queue = (async () => {
      await before
      await this.#send(model, mode)
    })()
    return this.#queue
  }

  async #send(model: string, mode: Mode): Promise<void> {
    const latest = () => this.choosing?.model === model && this.choosing.mode === mode
    try {
      const { model: row } = await this.#host.call({ command: 'set_mode', model, mode })
      this.said = { text: `${model} is set to ${mode}: the next turn goes out ${row.dialect}.`, bad: false }
      if (!latest()) return
      if (this.models.some((shown) => shown.model === model && shown.mode === mode)) {
        this.choosing = null
        return
      }
      this.#answered = true
      setTimeout(() => {
        if (this.#answered && latest()) this.choosing = null
      }, CONFIRM_MS)
    } catch (cause) {
      if (latest()) this.choosing = null
      this.said = { text: `${model} stays as it is. ${asCallError(cause).message}`, bad: true }
    }
  }

  #show(): void {
    this.#takeBack = null
    const next = this.#heard
    if (next === null) return
    if (next.models !== this.#shown?.models && this.#answered) {
      this.#answered = false
      this.choosing = null
    }
    this.status = next.status
    this.models = next.models
    this.accounts = next.accounts
    this.today = next.today
    this.turns = next.turns
    this.#shown = next
    this.known = true
    this.trouble = null
    this.#tick()
  }

  /** Moves the page's moment on, as often as something on it moves. */
  #tick(): void {
    clearTimeout(this.#timer)
    this.now = Date.now()
    const running = this.turns.some((turn) => turn.outcome === null)
    const period = this.trouble !== null ? TICK_MS.lost : running ? TICK_MS.running : TICK_MS.calm
    this.#timer = setTimeout(() => this.#tick(), period)
  }
}

/** The next frame; a page that is not drawn shows what it heard nevertheless, only later. */
function nextFrame(show: () => void): () => void {
  const takeBack = () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
  const once = () => {
    takeBack()
    show()
  }
  const frame = requestAnimationFrame(once)
  const timer = setTimeout(once, 250)
  return takeBack
}
