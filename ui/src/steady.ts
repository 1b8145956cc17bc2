/**
 * Keeps a list that grows at its top in place for whoever reads further down. Not every web engine does so by itself.
 *
 * **Invariant**: whoever looks at the beginning of the list sees what is new there.
 */

/** Takes the place of what is being read. The function it returns scrolls so that this is again where it was. */
export function steady(list: HTMLElement): () => void {
  const mark = focused(list) ?? firstSeen(list)
  if (!mark) return () => undefined
  const before = mark.getBoundingClientRect().top
  return () => {
    if (!mark.isConnected) return
    const moved = mark.getBoundingClientRect().top - before
    if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: 'instant' })
  }
}

function focused(list: HTMLElement): Element | null {
  const element = list.ownerDocument.activeElement
  if (!element || element === list || !list.contains(element)) return null
  const { top, bottom } = element.getBoundingClientRect()
  return bottom > 0 && top < window.innerHeight ? element : null
}

/** The first burst that reaches into view, once the top of the list is scrolled out of it. */
function firstSeen(list: HTMLElement): Element | null {
  if (list.getBoundingClientRect().top >= 0) return null
  for (const element of list.children) if (element.getBoundingClientRect().bottom > 0) return element
  return null
}
