/**
 * Turns as bursts: what one conversation and its children did in one go. Inside a burst the turns share one time scale,
 * so that siblings that ran side by side are seen side by side, and those that waited for each other as a staircase.
 *
 * **Invariant**: every turn is in exactly one burst, and a burst in which nothing changed is the same object as before.
 */
import type { TurnView } from './contract'

export interface Row {
  turn: TurnView
  /** How many conversations stand above this one; 0 for the one that began the burst. */
  depth: number
  /** Where the turn lies on the scale of its burst, as shares of 1. `first` is the first event, if one came. */
  from: number
  first: number | null
  to: number
  /** Milliseconds, so far for a turn that runs. Null for one whose end nobody knows. */
  lasted: number | null
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
  running: number
  /** The most turns that ran at the same moment. */
  atOnce: number
  sentBytes: number
  /** The first failure, if there was one. */
  failure: string | null
}

/** A conversation that was silent for longer than this begins a new burst. */
const SILENCE_MS = 60_000

/** A function that sorts turns into bursts, newest burst first, and inside one in the order of starting. */
export function remembering(): (turns: readonly TurnView[], now: number) => Burst[] {
  let last = new Map<string, Burst>()
  return (turns, now) => {
    const parents = new Map<string, string>()
    for (const { conversation, parent } of turns) if (parent !== null) parents.set(conversation, parent)
    const families = new Map<string, TurnView[]>()
    for (const turn of turns) {
      const root = lineOf(turn, parents).at(-1) ?? turn.conversation
      const family = families.get(root)
      if (family) family.push(turn)
      else families.set(root, [turn])
    }
    const all = [...families].flatMap(([root, family]) =>
      split(family, now).map((part) => {
        const before = last.get(part[0]?.id ?? root)
        return before?.running === 0 && isOf(before, root, part) ? before : burst(root, part, parents, now)
      }),
    )
    last = new Map(all.map((one) => [one.key, one]))
    return all.sort((a, b) => b.start - a.start || (a.key < b.key ? 1 : -1))
  }
}

function isOf(burst: Burst, root: string, turns: readonly TurnView[]): boolean {
  return (
    burst.root === root &&
    burst.rows.length === turns.length &&
    burst.rows.every((row, place) => row.turn === turns[place])
  )
}

/** The conversation of a turn and those above it. A circle, which only nonsense could write, ends where it closes. */
function lineOf({ conversation, parent }: TurnView, parents: ReadonlyMap<string, string>): string[] {
  const line = [conversation]
  for (let up = parent ?? parents.get(conversation); up !== undefined && !line.includes(up); up = parents.get(up)) line.push(up)
  return line
}

/** When the turn ended, or the present moment for one that still runs. Of a lost turn nobody knows the end. */
export function endOf({ started_at, ended_ms, outcome }: TurnView, now: number): number {
  if (ended_ms !== null) return started_at + ended_ms
  return outcome === null ? Math.max(started_at, now) : started_at
}

function split(family: TurnView[], now: number): TurnView[][] {
  const parts: TurnView[][] = []
  let busyUntil = -Infinity
  for (const turn of [...family].sort((a, b) => a.started_at - b.started_at || (a.id < b.id ? -1 : 1))) {
    const last = parts.at(-1)
    if (last && turn.started_at - busyUntil <= SILENCE_MS) last.push(turn)
    else parts.push([turn])
    busyUntil = Math.max(busyUntil, endOf(turn, now))
  }
  return parts
}

function burst(root: string, turns: TurnView[], parents: ReadonlyMap<string, string>, now: number): Burst {
  const start = Math.min(...turns.map((turn) => turn.started_at))
  const end = Math.max(...turns.map((turn) => endOf(turn, now)))
  const share = (at: number) => Math.min(1, Math.max(0, (at - start) / Math.max(1, end - start)))
  return {
    root,
    key: turns[0]?.id ?? root,
    client: (turns.find((turn) => turn.conversation === root) ?? turns[0])?.client ?? '',
    rows: turns.map((turn) => ({
      turn,
      depth: lineOf(turn, parents).length - 1,
      from: share(turn.started_at),
      first: turn.first_event_ms === null ? null : share(turn.started_at + turn.first_event_ms),
      to: share(endOf(turn, now)),
      lasted: turn.ended_ms ?? (turn.outcome === null ? endOf(turn, now) - turn.started_at : null),
    })),
    start,
    end,
    running: turns.filter((turn) => turn.outcome === null).length,
    atOnce: mostAtOnce(turns.map((turn) => [turn.started_at, endOf(turn, now)])),
    sentBytes: turns.reduce((sum, turn) => sum + turn.upstream_bytes, 0),
    failure: turns.find((turn) => turn.error_message !== null && turn.outcome !== null)?.error_message ?? null,
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
