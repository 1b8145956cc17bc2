/**
 * Invented facts in the shapes of the contract: three accounts, four models, two hundred turns in which the same prompt
 * goes out once in Lite and once in full.
 *
 * **Invariant**: nothing is random; only the present moment moves.
 */
export function world(kind, now) {
  number = 0
  const status = { version: '0.1.0', base_url: '', practice: true, started_at: now - 11_140_000, in_flight: 0 }
  if (kind === 'empty') return { status, accounts: [], models: [], today: today([]), turns: [] }
  const all = turns(now)
  return {
    status: { ...status, in_flight: all.filter(({ outcome }) => outcome === null).length },
    accounts: accounts(now),
    models: models(),
    today: today(all),
    turns: all,
  }
}

const CATALOG_LITE = 'auto: the catalog says use_responses_lite for this model'
const CATALOG_FULL = 'auto: the catalog does not say use_responses_lite for this model'

const models = () => [
  model('practice-full', 'Practice, full', 'auto', false, 3),
  model('practice-lite', 'Practice, Lite', 'auto', true, 3),
  model('gpt-5.6-sol', 'GPT-5.6-Sol', 'full', true, 2),
  model('gpt-5.3-codex', null, 'lite', null, 0),
]

/** A model's row as the program resolves it. */
export function model(name, display_name, mode, lite_in_catalog, accounts) {
  const auto_dialect = lite_in_catalog ? 'lite' : 'full'
  const reason =
    mode !== 'auto'
      ? `${mode}: set by the user for this model`
      : accounts === 0
        ? "auto: no account's catalog lists this model, and full is the default"
        : lite_in_catalog
          ? CATALOG_LITE
          : CATALOG_FULL
  return { model: name, display_name, mode, dialect: mode === 'auto' ? auto_dialect : mode, reason, auto_dialect, lite_in_catalog, accounts }
}

function accounts(now) {
  const at = (hours) => Math.floor(now / 1_000 + hours * 3_600)
  return [
    account('practice-one', 'plus', 'ready', null, 1, [quota(300, 41, at(2.2)), quota(10_080, 63, at(71))], at(-0.003)),
    account(
      'practice-two',
      'pro',
      'at its limit',
      'The backend says that its usage limit is reached.',
      0,
      [quota(300, 100, at(0.4)), quota(10_080, 82, at(110))],
      at(-0.2),
      at(0.4),
    ),
    account('practice-three', null, 'ready', null, 0, [], null),
  ]
}

function account(name, plan, state, reason, in_flight, windows, read_at, blocked_until = null) {
  return { name, plan, state, reason, blocked_until, in_flight, windows, read_at }
}

function quota(minutes, used_percent, resets_at) {
  return { minutes, used_percent, resets_at }
}

function today(turns) {
  const told = turns.filter(({ input_tokens }) => input_tokens !== null)
  const sum = (name) => (told.length === 0 ? null : told.reduce((all, turn) => all + (turn[name] ?? 0), 0))
  return {
    turns: turns.length,
    reported: told.length,
    input_tokens: sum('input_tokens'),
    cached_tokens: sum('cached_tokens'),
    output_tokens: sum('output_tokens'),
  }
}

const MANY = 200

/** Newest first, as the program gives them. */
function turns(now) {
  const all = []
  let at = now - 4_000
  for (let round = 0; all.length < MANY; round += 1) {
    const made = round % 2 === 0 ? together(at, round, now) : staircase(at, round)
    all.push(...made)
    at = Math.min(...made.map(({ started_at }) => started_at)) - 150_000 - round * 7_000
  }
  return all.sort((a, b) => b.started_at - a.started_at).slice(0, MANY)
}

/** Full: three children at once, then the parent goes on. The newest of these is still running. */
function together(end, round, now) {
  const running = round === 0
  const root = `ses_parent_${round}a7f3c2`
  const start = running ? now - 6_000 : end - 9_000
  const first = turn(root, null, start, 1_900, 'full', round)
  first.calls = calls(first, running ? [null, 0, null] : round % 4 === 2 ? [2, 0, 1] : [0, 1, 2])
  const rows = [first]
  for (let child = 0; child < 3; child += 1) {
    const row = turn(`ses_child_${round}${child}9be41`, root, start + 2_050 + child * 40, 2_600 + child * 700, 'full', round)
    row.calls = calls(row, [0, 1, 2])
    rows.push(running && child === 2 ? { ...row, ended_ms: null, outcome: null, output_tokens: null, input_tokens: null, cached_tokens: null, reasoning_tokens: null } : row)
  }
  if (!running) rows.push(goesOn(turn(root, null, start + 6_300, 1_500, 'full', round)))
  return rows
}

/** Lite: the same prompt, one child after another, the parent asked again in between. */
function staircase(end, round) {
  const root = `ses_parent_${round}d81e60`
  let at = end - 22_000
  const rows = []
  for (let child = 0; child < 3; child += 1) {
    const parent = child === 0 ? turn(root, null, at, 1_700, 'lite', round) : goesOn(turn(root, null, at, 1_700, 'lite', round))
    parent.calls = calls(parent, [0])
    at += 1_800
    const row = turn(`ses_child_${round}${child}c02aa`, root, at, 2_700, 'lite', round)
    row.calls = calls(row, [0, 1, 2])
    rows.push(parent, row)
    at += 2_800
  }
  rows.push(round === 1 ? failed(turn(root, null, at, 800, 'lite', round)) : turn(root, null, at, 1_600, 'lite', round))
  return rows
}

/** As many calls as there are places; each place says when the result of its call came back, or null for never. */
function calls({ id, started_at }, places) {
  return places.map((place, index) => ({
    index,
    call_id: `call_${id}_${index}`,
    tool: places.length === 1 ? 'task' : (['task', 'bash', 'read'][index] ?? 'task'),
    kind: 'function_call',
    emitted_at: started_at + 900 + index * 210,
    booked_at: place === null ? null : started_at + 6_200 + place,
    booked_position: place,
    booked_by: place === null ? null : `${id}-next`,
  }))
}

let number = 0

export function turn(conversation, parent, started_at, ended_ms, dialect, round) {
  number += 1
  const child = parent !== null
  return {
    calls: [],
    id: `turn-${String(number).padStart(4, '0')}`,
    started_at: Math.round(started_at),
    conversation,
    parent,
    client: 'opencode',
    model: 'practice-lite',
    mode: dialect === 'full' ? 'full' : 'auto',
    dialect,
    mode_reason: dialect === 'full' ? 'full: set by the user for this model' : CATALOG_LITE,
    account: child && number % 3 === 0 ? 'practice-two' : 'practice-one',
    account_reason: 'most headroom',
    moves: round === 2 && child ? 1 : 0,
    transport: 'ws',
    socket: 'new',
    input_items: child ? 3 : 4,
    new_items: null,
    whole_reason: 'nothing has completed on this connection yet',
    accepted_ms: 90 + (number % 5) * 12,
    first_event_ms: 310 + (number % 7) * 40,
    committed_ms: 420 + (number % 7) * 40,
    ended_ms,
    request_bytes: 21_000 + (number % 60) * 320,
    upstream_bytes: child ? 9_400 + (number % 60) * 60 : 22_400 + (number % 60) * 310,
    input_tokens: child ? 2_150 : 12_400 + (number % 60) * 70,
    cached_tokens: round === 4 ? null : child ? 1_024 : 11_264,
    output_tokens: 48 + (number % 60),
    reasoning_tokens: 0,
    outcome: 'completed',
    error_code: null,
    error_message: null,
  }
}

/** A later turn of a conversation: its connection is there, and only what is new is sent. */
function goesOn(row) {
  return { ...row, socket: 'reused', input_items: 12, new_items: 4, whole_reason: null, upstream_bytes: Math.round(row.upstream_bytes / 12) }
}

function failed(row) {
  return {
    ...row,
    first_event_ms: null,
    committed_ms: null,
    input_tokens: null,
    cached_tokens: null,
    output_tokens: null,
    reasoning_tokens: null,
    outcome: 'failed',
    error_code: 'usage_limit_reached',
    error_message: 'Every account has reached its limit; the first opens again in 24 min.',
  }
}
