/**
 * Numbers as people read them. Pure: the present moment is an argument.
 *
 * **Invariant**: what is not known is an en dash, never a zero.
 */
export const MISSING = '–'

type Maybe = number | null | undefined

function known(value: Maybe): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** A count: 1,234. */
export function count(value: Maybe): string {
  return known(value) ? whole.format(value) : MISSING
}

/** A count with its noun, "1 turn", "3 turns". */
export function several(value: Maybe, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** Tokens, shortened: 940, 12.4k, 1.2M. */
export function tokens(value: Maybe): string {
  if (!known(value)) return MISSING
  if (value < 1_000) return whole.format(value)
  if (value < 999_500) return `${short.format(value / 1_000)}k`
  return `${short.format(value / 1_000_000)}M`
}

/** Bytes in decimal units: 940 B, 12.4 kB, 1.2 MB. */
export function bytes(value: Maybe): string {
  if (!known(value)) return MISSING
  if (value < 1_000) return `${whole.format(value)} B`
  if (value < 999_500) return `${short.format(value / 1_000)} kB`
  return `${short.format(value / 1_000_000)} MB`
}

/** A percentage, whole: 62 %. */
export function percent(value: Maybe): string {
  return known(value) ? `${whole.format(value)} %` : MISSING
}

/** What is left, in percent: rounded down, so that nobody is promised more than there is; less than one is not nothing. */
export function remains(value: Maybe): string {
  if (!known(value)) return MISSING
  return value > 0 && value < 1 ? 'under 1 %' : percent(Math.floor(value))
}

/** The share of the input that was cached, in percent, or null when either number is missing. */
export function cachedShare(input: Maybe, cached: Maybe): number | null {
  return known(input) && known(cached) && input > 0 ? (100 * cached) / input : null
}

/** How long something took: 84 ms, 1.24 s, 2 min 5 s. */
export function took(ms: Maybe): string {
  if (!known(ms)) return MISSING
  if (ms < 999.5) return `${whole.format(ms)} ms`
  if (ms < 59_950) return `${short.format(ms / 1_000)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** A long stretch in its two largest units: 45 s, 12 min, 3 h 5 min, 2 d 4 h. */
export function stretch(seconds: Maybe): string {
  if (!known(seconds)) return MISSING
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return `${s} s`
  const minutes = Math.floor(s / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'min')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function pair(large: number, largeUnit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${rest} ${restUnit}`
}

/** A quota window by its length, the only name it has: 5 h, weekly, monthly. */
export function windowName(minutes: number): string {
  const day = 1_440
  if (minutes === day) return 'daily'
  if (minutes === 7 * day) return 'weekly'
  if (minutes >= 28 * day && minutes <= 31 * day) return 'monthly'
  return stretch(minutes * 60)
}

/** When a window starts anew, from Unix seconds: "resets in 2 h 10 min". What was read before its reset is old. */
export function resets(at: Maybe, now: number): string {
  if (!known(at)) return `resets ${MISSING}`
  const left = at - now / 1_000
  return left <= 0 ? 'has reset since' : `resets in ${stretch(left)}`
}

/** When something ends, from Unix seconds, in the reader's zone: "14:05", or "3 Dec, 14:05" on another day. */
export function until(at: Maybe, now: number): string {
  if (!known(at)) return MISSING
  const [then, today] = [new Date(at * 1_000), new Date(now)]
  const time = then.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', hour12: false })
  if (then.toDateString() === today.toDateString()) return time
  return `${then.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })}, ${time}`
}

/** How long ago something was, from Unix seconds: "just now", "12 min ago". */
export function ago(at: Maybe, now: number): string {
  if (!known(at)) return MISSING
  const seconds = now / 1_000 - at
  return seconds < 60 ? 'just now' : `${stretch(seconds)} ago`
}

/** The time of day in the reader's zone, to the second. */
export function clock(ms: Maybe): string {
  if (!known(ms)) return MISSING
  return new Date(ms).toLocaleTimeString('en-GB', { hour12: false })
}

/** Enough of an identifier to tell it from its neighbours. */
export function brief(id: string): string {
  return id.length <= 12 ? id : `…${id.slice(-8)}`
}
