/**
 * What the program has said so far, as one value: a snapshot with every delta since applied to it. Pure.
 *
 * **Invariant**: a delta is applied only to the number that it follows.
 */
import type { AccountRow, Message, ModelRow, Status, Today, TurnView } from './contract'
import type { Position } from './host'

export interface Known extends Position {
  status: Status
  accounts: AccountRow[]
  models: ModelRow[]
  today: Today
  /** Newest first. */
  turns: TurnView[]
}

/** The program keeps as many for those who watch; older ones are in `weir turns`. */
export const KEPT = 200

/** What is known after a message; null if the message does not follow, and a snapshot is needed. */
export function after(known: Known | null, message: Message): Known | null {
  if (message.kind === 'snapshot') {
    const { epoch, number, status, accounts, models, today, turns } = message
    return { epoch, number, status, accounts, models, today, turns: turns.slice(0, KEPT) }
  }
  if (known?.epoch !== message.epoch || known.number !== message.after) return null
  return {
    epoch: message.epoch,
    number: message.number,
    status: message.status ?? known.status,
    accounts: message.accounts ?? known.accounts,
    models: message.models ?? known.models,
    today: message.today ?? known.today,
    turns: replaced(known.turns, message.turns),
  }
}

/** A turn that is there stays where it is; new ones go to the front, the oldest of them first. */
function replaced(turns: TurnView[], changed: readonly TurnView[]): TurnView[] {
  if (changed.length === 0) return turns
  const fresh = new Map(changed.map((turn) => [turn.id, turn]))
  const kept = turns.map((turn) => {
    const instead = fresh.get(turn.id)
    fresh.delete(turn.id)
    return instead ?? turn
  })
  return [...[...fresh.values()].reverse(), ...kept].slice(0, KEPT)
}
