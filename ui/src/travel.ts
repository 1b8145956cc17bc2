/**
 * How a turn's input reached the backend, in words.
 *
 * **Invariant**: what was left out and why everything was sent are said together, since they are what a turn costs.
 */
import type { TurnView } from './contract'
import { MISSING, count, several } from './show'

/** The connection: "WebSocket, reused" or "SSE". */
export function way(turn: TurnView): string {
  if (turn.input_items === null) return MISSING
  return turn.socket === null ? 'SSE' : `WebSocket, ${turn.socket}`
}

/** What was sent: "3 new items of 24", or all of them and why. */
export function inputSent(turn: TurnView): string {
  if (turn.input_items === null) return MISSING
  if (turn.new_items !== null) return `${several(turn.new_items, 'new item')} of ${count(turn.input_items)}`
  const why = turn.whole_reason === null ? '' : `: ${turn.whole_reason}`
  const all = turn.input_items === 1 ? 'its one item' : `all ${count(turn.input_items)} items`
  return all + why
}
