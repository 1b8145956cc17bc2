/**
 * Turns as bursts: what one conversation and its children did in one go. Inside a burst the turns share one time scale,
 * so that siblings that ran side by side are seen side by side, and those that waited for each other as a staircase.
 * Pure: the present moment is an argument.
 *
 * **Invariant**: every turn is in exactly one burst.
 */
import type { Turn } from './contract'

export interface Row {
  turn: Turn
  /** Whether a parent conversation started this one. */
  child: boolean
  /** Where the turn lies on the scale of its burst, as shares of 1. `first` is the first event, if one came. */
  from: number
  first: number | null
  to: number
}

export interface Burst {
  /** The conversation that everything in the burst descends from. */
  root: string
  key: string
  client: string
  rows: Row[]
  /** Unix milliseconds. */
  start: number
  end: number
  /** The most turns that ran at the same moment. */
  atOnce: number
  /** Sent upstream, when every turn of the burst says how much. */
  sentBytes: number | null
}

/** A conversation that was silent for longer than this begins a new burst. */
const SILENCE_MS = 60_000

/** Newest burst first; inside a burst in the order of starting. */
export function bursts(turns: readonly Turn[], now: number): Burst[] {
  const parents = new Map<string, string>()
  for (const { conversation, parent } of turns) if (parent !== null) parents.set(conversation, parent)

  const families = new Map<string, Turn[]>()
  for (const turn of turns) {
    const root = rootOf(turn.parent ?? turn.conversation, parents)
    families.set(root, [...(families.get(root) ?? []), turn])
  }
  return [...families]
    .flatMap(([root, family]) => split(family, now).map((part) => burst(root, part, now)))
    .sort((a, b) => b.start - a.start)
}

/** Follows parents upwards; a circle, which only nonsense could write, ends where it closes. */
function rootOf(conversation: string, parents: ReadonlyMap<string, string>): string {
  const seen = new Set<string>()
  let at = conversation
  for (let up = parents.get(at); up !== undefined && !seen.has(at); up = parents.get(at)) {
    seen.add(at)
    at = up
  }
  return at
}

/** When the turn ended, or the present moment for one that still runs. Of a lost turn nobody knows the end. */
export function endOf({ started_at, ended_ms, outcome }: Turn, now: number): number {
  if (ended_ms !== null) return started_at + ended_ms
  return outcome === null ? Math.max(started_at, now) : started_at
}

function split(family: Turn[], now: number): Turn[][] {
  const parts: Turn[][] = []
  let busyUntil = -Infinity
  for (const turn of [...family].sort((a, b) => a.started_at - b.started_at || a.id.localeCompare(b.id))) {
    const last = parts.at(-1)
    if (last && turn.started_at - busyUntil <= SILENCE_MS) last.push(turn)
    else parts.push([turn])
    busyUntil = Math.max(busyUntil, endOf(turn, now))
  }
  return parts
}

function burst(root: string, turns: Turn[], now: number): Burst {
  const start = Math.min(...turns.map((turn) => turn.started_at))
  const end = Math.max(...turns.map((turn) => endOf(turn, now)))
  const share = (at: number) => Math.min(1, Math.max(0, (at - start) / Math.max(1, end - start)))
  const rows = turns.map((turn) => ({
    turn,
    child: turn.parent !== null,
    from: share(turn.started_at),
    first: turn.first_event_ms === null ? null : share(turn.started_at + turn.first_event_ms),
    to: share(endOf(turn, now)),
  }))
  return {
    root,
    key: turns[0]?.id ?? root,
    client: (turns.find((turn) => turn.conversation === root) ?? turns[0])?.client ?? '',
    rows,
    start,
    end,
    atOnce: mostAtOnce(turns.map((turn) => [turn.started_at, endOf(turn, now)])),
    sentBytes: sum(turns.map((turn) => turn.upstream_bytes)),
  }
}

/** The largest number of spans that share a moment. Spans that only touch do not overlap. */
export function mostAtOnce(spans: readonly (readonly [from: number, to: number])[]): number {
  const steps = spans
    .flatMap(([from, to]) => [
      [from, 1] as const,
      [Math.max(to, from + 1), -1] as const,
    ])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
  let running = 0
  let most = 0
  for (const [, step] of steps) {
    running += step
    most = Math.max(most, running)
  }
  return most
}

function sum(values: readonly (number | null)[]): number | null {
  let total = 0
  for (const value of values) {
    if (value === null) return null
    total += value
  }
  return total
}
