import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { retryingFetch } from '../support/client.ts'

/** A browser without pages and scripts, for logins: cookies, redirects and forms. */

export type Seen = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The URL of the shown page. */
  readonly url: string
  /** The last redirect to another origin than the issuer: the redirect URI of the application with its parameters. */
  readonly left: URL | undefined
}

export type Fields = Readonly<Record<string, string>>

export type Browser = {
  readonly get: (url: string, headers?: Fields) => Promise<Seen>
  readonly post: (url: string, fields: Fields | string, headers?: Fields) => Promise<Seen>
  /** By name and path, so that a test can copy them to another browser. */
  readonly cookies: Map<string, { readonly value: string; readonly path: string }>
}

const REDIRECTS_MAX = 10

/** Redirects are followed as long as they stay at the issuer. */
export const openBrowser = (origin: string): Browser => {
  const cookies: Browser['cookies'] = new Map()

  const keep = (headers: Headers): void => {
    for (const cookie of headers.getSetCookie()) {
      const [pair = '', ...attributes] = cookie.split('; ')
      const [name = '', value = ''] = pair.split(/=(.*)/s)
      const path = attributes.find(attribute => attribute.startsWith('path='))?.slice(5) ?? '/'
      if (value === '') cookies.delete(`${name} ${path}`)
      else cookies.set(`${name} ${path}`, { value, path })
    }
  }

  const cookiesFor = (url: string): Fields => {
    const { pathname } = new URL(url)
    const sent = [...cookies].filter(
      ([, { path }]) => pathname === path || pathname.startsWith(`${path.replace(/\/$/, '')}/`),
    )
    const cookie = sent.map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ')
    return cookie === '' ? {} : { cookie }
  }

  const follow = async (url: string, init: RequestInit, redirects = 0): Promise<Seen> => {
    const headers = { accept: 'text/html', ...cookiesFor(url), ...(init.headers as Fields | undefined) }
    const response = await retryingFetch(url, { ...init, redirect: 'manual', headers })
    keep(response.headers)
    const location = response.headers.get('location')
    const text = await response.text()
    const seen = { status: response.status, headers: response.headers, text, url, left: undefined }
    if (location === null) return seen
    const next = new URL(location, url)
    if (next.origin !== origin) return { ...seen, left: next }
    expect(redirects, 'redirects').to.be.below(REDIRECTS_MAX)
    return follow(next.href, {}, redirects + 1)
  }

  return {
    cookies,
    get: (url, headers = {}) => follow(url, { headers }),
    post: (url, fields, headers = {}) =>
      follow(url, { method: 'POST', body: typeof fields === 'string' ? fields : new URLSearchParams(fields), headers }),
  }
}

const unescaped = (text: string): string =>
  text
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

/** The form of a page: its action and its hidden fields. */
export const formOf = ({ text, url }: Seen): { readonly action: string; readonly csrf: string } => {
  const action = /<form method="post" action="([^"]+)"/.exec(text)?.[1]
  const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1]
  if (action === undefined || csrf === undefined) throw new Error(`There is no form in this page:\n${text}`)
  return { action: new URL(unescaped(action), url).href, csrf: unescaped(csrf) }
}

/** Fills in the login form of the page. */
export const logIn = (browser: Browser, page: Seen, username: string, password: string): Promise<Seen> => {
  const { action, csrf } = formOf(page)
  return browser.post(action, { csrf, username, password })
}

export const decide = (browser: Browser, page: Seen, decision: 'allow' | 'deny'): Promise<Seen> => {
  const { action, csrf } = formOf(page)
  return browser.post(action, { csrf, decision })
}

export const newPkce = () => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}
