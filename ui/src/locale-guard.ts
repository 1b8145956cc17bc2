/**
 * WebKitGTK reports the language "C" when LANG is unset or C. `Intl` refuses that name with a RangeError, and one such
 * error while modules load leaves a blank window without a word. So the language is set right before anything reads it.
 *
 * **Invariant**: `main.ts` imports this module first.
 */
export function usable(language: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(language).length >= 0
  } catch {
    return false
  }
}

export function guard(browser: Navigator): void {
  if (usable(browser.language)) return
  Object.defineProperty(browser, 'language', { value: 'en', configurable: true })
  Object.defineProperty(browser, 'languages', { value: ['en'], configurable: true })
}

guard(navigator)
