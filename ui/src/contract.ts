// The contract with the program, written by `WEIR_WRITE_CONTRACT=1 cargo test contract`. Do not edit.
// Units stand in the names: `_ms` milliseconds, `_s` seconds, `_bytes` bytes. A number that is not known is null.

export type Mode = "auto" | "lite" | "full";

export type Dialect = "lite" | "full";

export type Command = { "command": "status" } | { "command": "models" } | { "command": "open" } | { "command": "usage", days: number | null, } | { "command": "set_mode", model: string, mode: Mode, } | { "command": "accounts" } | { "command": "turns", limit: number | null, } | { "command": "turn", id: string, } | { "command": "probe", model: string, };

export type Status = { version: string, base_url: string, 
/**
 * The backend is the practice upstream.
 */
practice: boolean, 
/**
 * Unix milliseconds.
 */
started_at: number, in_flight: number, };

export type ModelRow = { model: string, display_name: string | null, 
/**
 * The user's choice.
 */
mode: Mode, 
/**
 * What the next turn would be sent in.
 */
dialect: Dialect, reason: string, 
/**
 * What auto would resolve to.
 */
auto_dialect: Dialect, 
/**
 * What the catalog says, where it says anything.
 */
lite_in_catalog: boolean | null, 
/**
 * How many accounts offer it.
 */
accounts: number, };

export type Window = { 
/**
 * Length in minutes: 300 for five hours, 10080 for a week.
 */
minutes: number, 
/**
 * Used share in percent, within 0 and 100.
 */
used_percent: number, 
/**
 * When it starts anew, in unix seconds.
 */
resets_at: number | null, };

export type AccountRow = { name: string, plan: string | null, 
/**
 * `ready`, `at its limit` or `cannot serve`.
 */
state: string, 
/**
 * Why it is not ready, in a sentence.
 */
reason: string | null, 
/**
 * When a limit that the backend told ends, in unix seconds; windows say for themselves when they start anew.
 */
blocked_until: number | null, in_flight: number, 
/**
 * By length, shortest first; a window that was not reported is absent.
 */
windows: Array<Window>, 
/**
 * When a window was last reported, in unix seconds.
 */
read_at: number | null, };

export type TurnRow = { id: string, 
/**
 * Unix milliseconds.
 */
started_at: number, conversation: string, 
/**
 * The conversation that started this one, for a subagent.
 */
parent: string | null, client: string, model: string, 
/**
 * What the user had chosen for the model when the turn was decided.
 */
mode: Mode, 
/**
 * The form in which the turn was sent upstream.
 */
dialect: Dialect, mode_reason: string, 
/**
 * The account's name, if one was found to pay.
 */
account: string | null, account_reason: string | null, 
/**
 * How often the turn moved to another account before its commit point.
 */
moves: number, 
/**
 * `ws`: over the connection that the conversation keeps; `sse`: as a request of its own.
 */
transport: string, 
/**
 * `new` or `reused`, for a turn over a connection.
 */
socket: string | null, 
/**
 * How many items the turn's input has, once it was sent.
 */
input_items: number | null, 
/**
 * How many of them were sent, where the backend had the others.
 */
new_items: number | null, 
/**
 * Why all of them were sent, where there is a reason.
 */
whole_reason: string | null, 
/**
 * Milliseconds after `started_at`: the backend's status said yes.
 */
accepted_ms: number | null, 
/**
 * Milliseconds after `started_at`: the backend's first event.
 */
first_event_ms: number | null, 
/**
 * Milliseconds after `started_at`: the commit point.
 */
committed_ms: number | null, 
/**
 * Milliseconds after `started_at`: the outcome. Unknown for a lost turn.
 */
ended_ms: number | null, 
/**
 * The client's body, decoded.
 */
request_bytes: number, 
/**
 * What was sent upstream, of all tries together.
 */
upstream_bytes: number, input_tokens: number | null, 
/**
 * The part of `input_tokens` that the backend had cached.
 */
cached_tokens: number | null, output_tokens: number | null, 
/**
 * The part of `output_tokens` that was reasoning.
 */
reasoning_tokens: number | null, 
/**
 * None while it runs, then `completed`, `incomplete`, `failed`, `refused`, `cancelled`, or `lost` if the program died.
 */
outcome: string | null, error_code: string | null, 
/**
 * The sentence that the client saw; never text of the request or the answer.
 */
error_message: string | null, };

export type CallRow = { 
/**
 * The place among the calls of this turn, from 0.
 */
index: number, call_id: string, tool: string, kind: string, 
/**
 * Unix milliseconds.
 */
emitted_at: number, 
/**
 * Unix milliseconds, None until a result came back.
 */
booked_at: number | null, 
/**
 * The place among the booked calls of this turn, from 0.
 */
booked_position: number | null, 
/**
 * The turn whose request carried the result.
 */
booked_by: string | null, };

export type TurnView = { calls: Array<CallRow>, id: string, 
/**
 * Unix milliseconds.
 */
started_at: number, conversation: string, 
/**
 * The conversation that started this one, for a subagent.
 */
parent: string | null, client: string, model: string, 
/**
 * What the user had chosen for the model when the turn was decided.
 */
mode: Mode, 
/**
 * The form in which the turn was sent upstream.
 */
dialect: Dialect, mode_reason: string, 
/**
 * The account's name, if one was found to pay.
 */
account: string | null, account_reason: string | null, 
/**
 * How often the turn moved to another account before its commit point.
 */
moves: number, 
/**
 * `ws`: over the connection that the conversation keeps; `sse`: as a request of its own.
 */
transport: string, 
/**
 * `new` or `reused`, for a turn over a connection.
 */
socket: string | null, 
/**
 * How many items the turn's input has, once it was sent.
 */
input_items: number | null, 
/**
 * How many of them were sent, where the backend had the others.
 */
new_items: number | null, 
/**
 * Why all of them were sent, where there is a reason.
 */
whole_reason: string | null, 
/**
 * Milliseconds after `started_at`: the backend's status said yes.
 */
accepted_ms: number | null, 
/**
 * Milliseconds after `started_at`: the backend's first event.
 */
first_event_ms: number | null, 
/**
 * Milliseconds after `started_at`: the commit point.
 */
committed_ms: number | null, 
/**
 * Milliseconds after `started_at`: the outcome. Unknown for a lost turn.
 */
ended_ms: number | null, 
/**
 * The client's body, decoded.
 */
request_bytes: number, 
/**
 * What was sent upstream, of all tries together.
 */
upstream_bytes: number, input_tokens: number | null, 
/**
 * The part of `input_tokens` that the backend had cached.
 */
cached_tokens: number | null, output_tokens: number | null, 
/**
 * The part of `output_tokens` that was reasoning.
 */
reasoning_tokens: number | null, 
/**
 * None while it runs, then `completed`, `incomplete`, `failed`, `refused`, `cancelled`, or `lost` if the program died.
 */
outcome: string | null, error_code: string | null, 
/**
 * The sentence that the client saw; never text of the request or the answer.
 */
error_message: string | null, };

export type OneTurn = { turn: TurnRow, calls: Array<CallRow>, };

export type Today = { turns: number, 
/**
 * How many of the turns said what they used; the sums are of these.
 */
reported: number, input_tokens: number | null, cached_tokens: number | null, output_tokens: number | null, };

export type DayUsage = { 
/**
 * `2026-08-17`.
 */
day: string, model: string, turns: number, 
/**
 * How many of the turns said what they used. The sums are of these; they are None when there were none.
 */
reported: number, input_tokens: number | null, 
/**
 * The part of `input_tokens` that the backend had cached.
 */
cached_tokens: number | null, output_tokens: number | null, 
/**
 * The part of `output_tokens` that was reasoning.
 */
reasoning_tokens: number | null, };

export type TrialRow = { dialect: Dialect, trial: number, 
/**
 * `accepted`, or the backend's code.
 */
answer: string, 
/**
 * Calls in the one response, where there was one.
 */
calls: number | null, input_tokens: number | null, output_tokens: number | null, 
/**
 * What the backend said when it refused.
 */
message: string | null, };

export type Report = { model: string, account: string, trials: Array<TrialRow>, };

export type Snapshot = { 
/**
 * One start of the program; numbers of another start mean nothing here.
 */
epoch: string, number: number, status: Status, accounts: Array<AccountRow>, models: Array<ModelRow>, today: Today, 
/**
 * Newest first.
 */
turns: Array<TurnView>, };

export type Delta = { epoch: string, number: number, 
/**
 * The number that the watcher must have seen last.
 */
after: number, status: Status | null, accounts: Array<AccountRow> | null, models: Array<ModelRow> | null, today: Today | null, 
/**
 * Turns that are new or changed, oldest first; each replaces the one of its id.
 */
turns: Array<TurnView>, };

export type Message = { "kind": "snapshot" } & Snapshot | { "kind": "delta" } & Delta;
