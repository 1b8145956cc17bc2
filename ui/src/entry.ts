/**
 * How a page in a browser is let in. `weir open` puts a ticket that is good once into the fragment of the address, which
 * no server sees; the page exchanges it for a key of its own, which lives as long as the tab and the program.
 *
 * **Invariant**: after `take` the address holds no ticket, and nothing but a session's key is ever stored.
 */
import { CallError } from './host'

const SLOT = 'weir.session-key'

type Place = Pick<Window, 'location' | 'history' | 'sessionStorage'>
type Exchange = (ticket: string) => Promise<string>

export class Entry {
  #ticket: string | null = null
  #key: string | null
  readonly #place: Place
  readonly #exchange: Exchange

  constructor(place: Place, exchange: Exchange) {
    this.#place = place
    this.#exchange = exchange
    this.#key = remembered(place)
  }

  /** Takes a ticket out of the address. Whether there was one. */
  take(): boolean {
    const { location, history } = this.#place
    const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket')
    if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search)
    if (ticket) this.#ticket = ticket
    return ticket !== null && ticket !== ''
  }

  /** The key of this page; a ticket is exchanged first. Throws a `CallError` when there is neither. */
  async key(): Promise<string> {
    const ticket = this.#ticket
    if (ticket !== null) {
      try {
        this.#keep(await this.#exchange(ticket))
      } catch (cause) {
        // Only an answer uses a ticket up. A page that is already inside stays there when it is shown a used one.
        if (!(cause instanceof CallError && cause.kind === 'unreachable')) this.#ticket = null
        if (this.#ticket !== null || this.#key === null) throw cause
      }
      this.#ticket = null
    }
    if (this.#key === null) throw new CallError('outside', 'This page has no key yet.')
    return this.#key
  }

  /** The program does not know the key any more. */
  forget(key: string): void {
    if (this.#key !== key) return
    this.#key = null
    try {
      this.#place.sessionStorage.removeItem(SLOT)
    } catch {
      // Where storage is forbidden there is nothing to remove.
    }
  }

  #keep(key: string): void {
    this.#key = key
    try {
      this.#place.sessionStorage.setItem(SLOT, key)
    } catch {
      // A browser may forbid storage altogether; the key then lasts until the page is reloaded.
    }
  }
}

function remembered({ sessionStorage }: Place): string | null {
  try {
    return sessionStorage.getItem(SLOT)
  } catch {
    return null
  }
}
