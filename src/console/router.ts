import { HOME } from './settings.ts'

/** The address is the state of a page: its path names the page and its subject, its query the filters. */

export type Place = { readonly page: string; readonly subject: string; readonly query: URLSearchParams }

const CHANGED = 'place-changed'

/** A person may type any address; one that does not decode names itself. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const place = (): Place => {
  const [page = '', ...rest] = location.pathname.slice(HOME.length + 1).split('/')
  return { page, subject: decoded(rest.join('/')), query: new URLSearchParams(location.search) }
}

export const onPlace = (listener: () => void): (() => void) => {
  window.addEventListener(CHANGED, listener)
  window.addEventListener('popstate', listener)
  return () => {
    window.removeEventListener(CHANGED, listener)
    window.removeEventListener('popstate', listener)
  }
}

/** The address of a page: `hrefOf('case', 'inv_…')`. */
export const hrefOf = (page: string, subject = '', query: Readonly<Record<string, string>> = {}): string => {
  const path = [HOME, page, encodeURIComponent(subject)].filter(part => part !== '').join('/')
  const search = new URLSearchParams(query).toString()
  return search === '' ? path : `${path}?${search}`
}

type How = 'push' | 'replace'

/** `replace`: the present address only led there, and is no place to come back to. */
export const go = (href: string, how: How = 'push'): void => {
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', href)
  window.dispatchEvent(new Event(CHANGED))
}

/** Changes members of the query; an empty value removes one. Steps of a control replace the address before. */
export const setQuery = (changes: Readonly<Record<string, string>>, how: How = 'push'): void => {
  const { query } = place()
  for (const [name, value] of Object.entries(changes))
    if (value === '') query.delete(name)
    else query.set(name, value)
  const search = query.toString()
  go(`${location.pathname}${search === '' ? '' : `?${search}`}`, how)
}

/** Follows links between pages without loading the page anew. */
export const followLinks = (): void =>
  document.addEventListener('click', event => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey
    if (link === null || !isPlain || link.target !== '' || link.hasAttribute('download')) return
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${HOME}/`)) return
    event.preventDefault()
    go(link.href)
    window.scrollTo(0, 0)
  })
