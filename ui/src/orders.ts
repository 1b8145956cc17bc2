/**
 * The calls of one turn in their two orders: as the model emitted them, and as their results came back. Pure.
 *
 * **Invariant**: every call is emitted once and is either booked or open.
 */
import type { CallRow } from './contract'

export interface Orders {
  emitted: CallRow[]
  /** In the order in which the results came back. */
  booked: CallRow[]
  /** Emitted, and no result yet. */
  open: number
  /** Whether the results came back in another order than the calls were emitted in. */
  crossed: boolean
}

export function orders(calls: readonly CallRow[]): Orders {
  const emitted = [...calls].sort((a, b) => a.index - b.index)
  const booked = emitted
    .filter((call) => call.booked_at !== null)
    .sort((a, b) => (a.booked_position ?? a.index) - (b.booked_position ?? b.index))
  return {
    emitted,
    booked,
    open: emitted.length - booked.length,
    crossed: booked.some((call, place) => place > 0 && call.index < (booked[place - 1]?.index ?? 0)),
  }
}

/** More numerals than this cannot be compared at a glance. */
const AT_A_GLANCE = 4

/** Both orders in one line: "1 2 3 → 3 1 –". With many calls it says what is the matter in words. */
export function inShort({ emitted, booked, open, crossed }: Orders): string {
  if (emitted.length === 0) return ''
  if (emitted.length > AT_A_GLANCE) {
    const matter = open > 0 ? `${open} open` : crossed ? 'crossed' : 'in order'
    return `${emitted.length}, ${matter}`
  }
  const numeral = (call: CallRow) => String(call.index + 1)
  const back = [...booked.map(numeral), ...Array.from({ length: open }, () => '–')]
  return `${emitted.map(numeral).join(' ')} → ${back.join(' ')}`
}

/** The same for ears. */
export function inWords({ emitted, open, crossed }: Orders): string {
  if (emitted.length === 0) return 'no calls'
  const many = `${emitted.length} ${emitted.length === 1 ? 'call' : 'calls'}`
  const order = crossed ? 'results in another order' : 'results in emitted order'
  return open > 0 ? `${many}, ${open} still open${crossed ? `, ${order}` : ''}` : `${many}, ${order}`
}
