/**
 * What `/api` says, as plain types. Units stand in the names: `_ms` milliseconds, `_s` seconds, `_bytes` bytes.
 * A number that is not known is null and is shown as missing.
 *
 * **Invariant**: nothing here is computed; every field has the name that the program gives it.
 */
export type Mode = 'auto' | 'lite' | 'full'
export type Dialect = 'lite' | 'full'

export interface Status {
  version: string
  base_url: string
  practice: boolean
  uptime_s: number | null
  in_flight: number | null
}

export interface Model {
  model: string
  display_name: string | null
  mode: Mode
  /** What the next turn goes out in; null when no account can serve the model. */
  dialect: Dialect | null
  reason: string | null
  lite_in_catalog: boolean | null
  accounts: number | null
}

export interface QuotaWindow {
  minutes: number
  used_percent: number | null
  /** Unix time, see `instant` in `show.ts`. */
  resets_at: number | string | null
}

export interface Account {
  name: string
  plan: string | null
  state: string
  in_flight: number | null
  windows: QuotaWindow[]
  reading_age_s: number | null
}

export interface Turn {
  id: string
  /** Unix time in milliseconds. */
  started_at: number
  conversation: string
  parent: string | null
  client: string
  model: string
  mode: Mode
  dialect: Dialect
  mode_reason: string | null
  account: string | null
  account_reason: string | null
  moves: number
  transport: string
  accepted_ms: number | null
  first_event_ms: number | null
  committed_ms: number | null
  ended_ms: number | null
  request_bytes: number | null
  upstream_bytes: number | null
  input_tokens: number | null
  cached_tokens: number | null
  output_tokens: number | null
  reasoning_tokens: number | null
  outcome: string | null
  error_code: string | null
  error_message: string | null
}

export type Command =
  | { command: 'status' }
  | { command: 'models' }
  | { command: 'set_mode'; model: string; mode: Mode }
  | { command: 'accounts' }
  | { command: 'turns'; limit: number }

export interface Replies {
  status: Status
  models: { models: Model[] }
  set_mode: { model: Model }
  accounts: { accounts: Account[] }
  turns: { turns: Turn[] }
}

export type Reply<C extends Command> = Replies[C['command']]
