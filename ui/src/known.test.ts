import { expect, test } from 'vitest'
import type { Delta, Message, Snapshot, Status } from './contract'
import { KEPT, after, type Known } from './known'
import { turn } from './turn.fixture'

const status: Status = { version: '0.1.0', base_url: 'http://127.0.0.1:8788/v1', practice: true, started_at: 0, in_flight: 0 }
const today = { turns: 0, reported: 0, input_tokens: null, cached_tokens: null, output_tokens: null }

const snapshot = (known: Partial<Snapshot> = {}): Message => ({ kind: 'snapshot', epoch: 'e', number: 5, status, accounts: [], models: [], today, turns: [], ...known })
const delta = (known: Partial<Delta>): Message => ({ kind: 'delta', epoch: 'e', number: 6, after: 5, status: null, accounts: null, models: null, today: null, turns: [], ...known })

const begun = (known: Partial<Snapshot> = {}) => after(null, snapshot(known))
const ids = (known: Known | null) => known?.turns.map(({ id }) => id)

test('a snapshot replaces everything, of whatever start of the program', () => {
  const known = after(begun({ turns: [turn({ id: 'old' })] }), snapshot({ epoch: 'other', number: 1, turns: [turn({ id: 'new' })] }))
  expect(known).toMatchObject({ epoch: 'other', number: 1 })
  expect(ids(known)).toEqual(['new'])
})

test('a delta changes what it names and leaves the rest the same', () => {
  const before = begun()
  const known = after(before, delta({ status: { ...status, in_flight: 2 } }))
  expect(known).toMatchObject({ number: 6, status: { in_flight: 2 } })
  expect(known?.models).toBe(before?.models)
  expect(known?.turns).toBe(before?.turns)
})

test('a delta that does not follow is a gap', () => {
  expect(after(null, delta({}))).toBeNull()
  expect(after(begun(), delta({ after: 4 }))).toBeNull()
  expect(after(begun(), delta({ after: 6, number: 7 }))).toBeNull()
  expect(after(begun(), delta({ epoch: 'other' }))).toBeNull()
})

test('a changed turn stays where it is, new ones come to the front, and the oldest fall out', () => {
  const turns = Array.from({ length: KEPT }, (_, place) => turn({ id: `t${place}` }))
  const known = after(begun({ turns }), delta({ turns: [turn({ id: 't3', account: 'one' }), turn({ id: 'a' }), turn({ id: 'b' })] }))
  expect(ids(known)?.slice(0, 6)).toEqual(['b', 'a', 't0', 't1', 't2', 't3'])
  expect(known?.turns[5]?.account).toBe('one')
  expect(known?.turns).toHaveLength(KEPT)
})
