/**
 * Invented facts in the shapes of `/api`: three accounts, four models, fifty turns in which the same prompt goes out
 * once in Lite and once in full.
 *
 * **Invariant**: nothing is random; only the present moment moves.
 */
export function world(kind, now) {
  if (kind === 'empty') return { status: status(), models: [], accounts: [], turns: [] }
  return { status: status(), models: models(), accounts: accounts(now), turns: turns(now) }
}

const status = () => ({ version: '0.1.0', base_url: '', practice: true, uptime_s: 11_140, in_flight: 2 })

const models = () => [
  model('practice-lite', 'Practice, Lite', 'auto', 'lite', 'the catalog says use_responses_lite', true, 3),
  model('practice-full', 'Practice, full', 'auto', 'full', 'the catalog does not ask for Lite', false, 3),
  model('gpt-5.6-sol', 'GPT-5.6-Sol', 'full', 'full', 'set by you', true, 2),
  model('gpt-5.3-codex', null, 'lite', null, 'no account offers Lite for this model', null, 0),
]

function model(name, display_name, mode, dialect, reason, lite_in_catalog, accounts) {
  return { model: name, display_name, mode, dialect, reason, lite_in_catalog, accounts }
}

function accounts(now) {
  const at = (hours) => Math.floor(now / 1_000 + hours * 3_600)
  return [
    account('practice-one', 'plus', 'ready', 2, [quota(300, 41, at(2.2)), quota(10_080, 63, at(71))], 12),
    account('practice-two', 'pro', 'limited', 0, [quota(300, 100, at(0.4)), quota(10_080, 82, at(110))], 95),
    account('practice-three', null, 'ready', 0, [quota(43_200, null, null)], null),
  ]
}

function account(name, plan, state, in_flight, windows, reading_age_s) {
  return { name, plan, state, in_flight, windows, reading_age_s }
}

function quota(minutes, used_percent, resets_at) {
  return { minutes, used_percent, resets_at }
}

/** Newest first, as the program gives them. */
function turns(now) {
  const all = []
  let at = now - 4_000
  for (let round = 0; all.length < 50; round += 1) {
    const side = round % 2 === 0
    const made = side ? together(at, round, now) : staircase(at, round)
    all.push(...made)
    at = Math.min(...made.map(({ started_at }) => started_at)) - 150_000 - round * 7_000
  }
  return all.sort((a, b) => b.started_at - a.started_at).slice(0, 50)
}

/** Full: three children at once, then the parent goes on. The newest of these is still running. */
function together(end, round, now) {
  const running = round === 0
  const root = `ses_parent_${round}a7f3c2`
  const start = running ? now - 6_000 : end - 9_000
  const rows = [turn(root, null, start, 1_900, 'full', round)]
  for (let child = 0; child < 3; child += 1) {
    const row = turn(`ses_child_${round}${child}9be41`, root, start + 2_050 + child * 40, 2_600 + child * 700, 'full', round)
    rows.push(running && child === 2 ? { ...row, ended_ms: null, outcome: null, output_tokens: null, input_tokens: null, cached_tokens: null } : row)
  }
  if (!running) rows.push(turn(root, null, start + 6_300, 1_500, 'full', round))
  return rows
}

/** Lite: the same prompt, one child after another, the parent asked again in between. */
function staircase(end, round) {
  const root = `ses_parent_${round}d81e60`
  let at = end - 22_000
  const rows = []
  for (let child = 0; child < 3; child += 1) {
    rows.push(turn(root, null, at, 1_700, 'lite', round))
    at += 1_800
    rows.push(turn(`ses_child_${round}${child}c02aa`, root, at, 2_700, 'lite', round))
    at += 2_800
  }
  rows.push(round === 3 ? failed(turn(root, null, at, 800, 'lite', round)) : turn(root, null, at, 1_600, 'lite', round))
  return rows
}

let number = 0

function turn(conversation, parent, started_at, ended_ms, dialect, round) {
  number += 1
  const child = parent !== null
  return {
    id: `turn-${String(number).padStart(4, '0')}`,
    started_at: Math.round(started_at),
    conversation,
    parent,
    client: 'opencode',
    model: 'practice-lite',
    mode: dialect === 'full' ? 'full' : 'auto',
    dialect,
    mode_reason: dialect === 'full' ? 'set by you' : 'the catalog says use_responses_lite',
    account: child && number % 3 === 0 ? 'practice-two' : 'practice-one',
    account_reason: 'most headroom',
    moves: round === 2 && child ? 1 : 0,
    transport: 'sse',
    accepted_ms: 90 + (number % 5) * 12,
    first_event_ms: 310 + (number % 7) * 40,
    committed_ms: 420 + (number % 7) * 40,
    ended_ms,
    request_bytes: 21_000 + number * 320,
    upstream_bytes: child ? 9_400 + number * 60 : 22_400 + number * 310,
    input_tokens: child ? 2_150 : 12_400 + number * 70,
    cached_tokens: round === 4 ? null : child ? 1_024 : 11_264,
    output_tokens: 48 + number,
    reasoning_tokens: 0,
    outcome: 'completed',
    error_code: null,
    error_message: null,
  }
}

function failed(row) {
  return {
    ...row,
    first_event_ms: null,
    committed_ms: null,
    input_tokens: null,
    cached_tokens: null,
    output_tokens: null,
    outcome: 'failed',
    error_code: 'usage_limit_reached',
    error_message: 'Every account has reached its limit; the first opens again in 24 min.',
  }
}
