/** Turns for tests: everything unknown unless a test says otherwise. */
import type { Turn } from './contract'

export function turn(known: Partial<Turn> & Pick<Turn, 'id'>): Turn {
  return {
    started_at: 0,
    conversation: 'parent',
    parent: null,
    client: 'opencode',
    model: 'practice-lite',
    mode: 'auto',
    dialect: 'lite',
    mode_reason: null,
    account: null,
    account_reason: null,
    moves: 0,
    transport: 'sse',
    accepted_ms: null,
    first_event_ms: null,
    committed_ms: null,
    ended_ms: null,
    request_bytes: null,
    upstream_bytes: null,
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
