import { expect, test } from 'vitest'
import { endOf, mostAtOnce, remembering } from './bursts'
import type { TurnView } from './contract'
import { turn } from './turn.fixture'

const bursts = (turns: readonly TurnView[], now: number) => remembering()(turns, now)

const child = (id: string, started_at: number, ended_ms: number) =>
  turn({ id, conversation: `child-${id}`, parent: 'parent', started_at, ended_ms })

test('siblings that ran together are one burst with three at once', () => {
  const [burst, ...others] = bursts(
    [child('c', 1_020, 500), child('b', 1_010, 500), child('a', 1_000, 500), turn({ id: 'p', started_at: 0, ended_ms: 900 })],
    9_000,
  )
  expect(others).toEqual([])
  expect(burst?.rows.map((row) => row.turn.id)).toEqual(['p', 'a', 'b', 'c'])
  expect(burst?.rows.map((row) => row.depth)).toEqual([0, 1, 1, 1])
  expect(burst?.atOnce).toBe(3)
})

test('the same work one after another is one at once', () => {
  const [burst] = bursts([child('a', 0, 500), child('b', 500, 500), child('c', 1_000, 500)], 9_000)
  expect(burst?.atOnce).toBe(1)
  expect(burst?.rows.map(({ from, to }) => [from, to])).toEqual([
    [0, 1 / 3],
    [1 / 3, 2 / 3],
    [2 / 3, 1],
  ])
})

test('a minute of silence begins a new burst, and the newest comes first', () => {
  const all = bursts([turn({ id: 'old', ended_ms: 1_000 }), turn({ id: 'new', started_at: 61_001, ended_ms: 10 })], 90_000)
  expect(all.map(({ key }) => key)).toEqual(['new', 'old'])
  const joined = bursts([turn({ id: 'old', ended_ms: 1_000 }), turn({ id: 'new', started_at: 61_000, ended_ms: 10 })], 90_000)
  expect(joined).toHaveLength(1)
})

test('grandchildren belong to the root even when the root is no longer listed', () => {
  const all = bursts(
    [
      turn({ id: '1', conversation: 'child', parent: 'root', ended_ms: 5 }),
      turn({ id: '2', conversation: 'grandchild', parent: 'child', ended_ms: 5 }),
    ],
    10,
  )
  expect(all.map(({ root, rows }) => [root, rows.map(({ depth }) => depth)])).toEqual([['root', [1, 2]]])
})

test('a circle of parents ends', () => {
  const all = bursts(
    [turn({ id: '1', conversation: 'a', parent: 'b' }), turn({ id: '2', conversation: 'b', parent: 'a' })],
    10,
  )
  expect(all.flatMap(({ rows }) => rows)).toHaveLength(2)
})

test('a running turn lasts until now; of a lost one nobody knows', () => {
  expect(endOf(turn({ id: '1', started_at: 100, outcome: null }), 700)).toBe(700)
  expect(endOf(turn({ id: '1', started_at: 100, outcome: 'lost' }), 700)).toBe(100)
})

test('a running turn has lasted until now, and nobody knows how long a lost one did', () => {
  const lasted = (known: Partial<TurnView>) => bursts([turn({ id: '1', started_at: 100, ...known })], 700)[0]?.rows[0]?.lasted
  expect(lasted({ outcome: null })).toBe(600)
  expect(lasted({ outcome: 'lost' })).toBeNull()
  expect(lasted({ ended_ms: 42 })).toBe(42)
})

test('a burst in which nothing changed is the same object, and one that runs is not', () => {
  const sort = remembering()
  const done = turn({ id: 'done', ended_ms: 10 })
  const runs = turn({ id: 'runs', conversation: 'other', started_at: 500, outcome: null })
  const before = sort([runs, done], 600)
  const later = sort([runs, done], 700)
  expect(later[1]).toBe(before[1])
  expect(later[0]?.rows[0]?.lasted).toBe(200)
  const changed = sort([runs, { ...done, account: 'one' }], 700)
  expect(changed[1]?.rows[0]?.turn.account).toBe('one')
})

test('the heading names the first failure', () => {
  expect(bursts([turn({ id: '1' })], 0)[0]?.failure).toBeNull()
  expect(bursts([turn({ id: '1' }), turn({ id: '2', outcome: 'failed', error_message: 'Why.' })], 0)[0]?.failure).toBe('Why.')
})

test('spans that only touch do not overlap, and one without length still counts', () => {
  expect(mostAtOnce([])).toBe(0)
  expect(mostAtOnce([[0, 10], [10, 20]])).toBe(1)
  expect(mostAtOnce([[0, 10], [9, 20], [5, 6]])).toBe(2)
  expect(mostAtOnce([[7, 7]])).toBe(1)
})
