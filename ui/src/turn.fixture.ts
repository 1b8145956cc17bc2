/** Turns and calls for tests: everything unknown unless a test says otherwise. */
import type { CallRow, TurnView } from './contract'

export function turn(known: Partial<TurnView> & Pick<TurnView, 'id'>): TurnView {
  return {
    calls: [],
    started_at: 0,
    conversation: 'parent',
    parent: null,
    client: 'opencode',
    model: 'practice-lite',
    mode: 'auto',
    dialect: 'lite',
    mode_reason: 'auto: the catalog says use_responses_lite for this model',
    account: null,
    account_reason: null,
    moves: 0,
    transport: 'sse',
    socket: null,
    input_items: null,
    new_items: null,
    whole_reason: null,
    accepted_ms: null,
    first_event_ms: null,
    committed_ms: null,
    ended_ms: null,
    request_bytes: 0,
    upstream_bytes: 0,
    input_tokens: null,
    cached_tokens: null,
    output_tokens: null,
    reasoning_tokens: null,
    outcome: 'completed',
    error_code: null,
    error_message: null,
    ...known,
  }
}

/** A call; with `back` its result came back at that place. */
export function call(index: number, back: number | null = null): CallRow {
  return {
    index,
    call_id: `call_${index}`,
    tool: 'task',
    kind: 'function_call',
    emitted_at: 1_000 + index,
    booked_at: back === null ? null : 2_000 + back,
    booked_position: back,
    booked_by: back === null ? null : 'later',
  }
}
