/**
 * The control key: it arrives in the fragment of the address, which no server sees, and is taken out of the address at
 * once so that it is neither bookmarked nor copied along. It lives as long as the tab.
 *
 * **Invariant**: after `takeKey` the address holds no key, whatever became of the storage.
 */
const SLOT = 'weir.control-key'

type Place = Pick<Window, 'location' | 'history' | 'sessionStorage'>

/** The key from the address, else the one this tab was given before, else null. */
export function takeKey({ location, history, sessionStorage }: Place): string | null {
  const fresh = new URLSearchParams(location.hash.slice(1)).get('key')
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search)
  // A browser may forbid storage altogether; the key then lasts until the page is reloaded.
  try {
    if (fresh) sessionStorage.setItem(SLOT, fresh)
    return fresh || sessionStorage.getItem(SLOT)
  } catch {
    return fresh || null
  }
}
