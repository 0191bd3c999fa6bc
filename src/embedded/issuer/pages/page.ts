import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { type Html, html } from './html.ts'

export type Page = {
  readonly title: string
  readonly body: Html
  readonly status?: number
  /** The redirect URI of the application, to which a form of this page may lead the browser. */
  readonly goesTo?: string
  readonly headers?: Readonly<Record<string, string>>
}

const STYLE = readFileSync(new URL('page.css', import.meta.url), 'utf8').trim()
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%231f5f4a'/%3E%3Cpath d='M4 5h8M4 8h8M4 11h5' stroke='%23fff' stroke-width='1.6' stroke-linecap='round'/%3E%3C/svg%3E"

/** Browsers apply `form-action` to the redirect after a form too. The policy has no syntax for IPv6 hosts. */
const formTarget = (goesTo: string | undefined): string => {
  if (goesTo === undefined || !URL.canParse(goesTo)) return ''
  const { origin, protocol, hostname } = new URL(goesTo)
  return hostname.startsWith('[') ? ` ${protocol}` : ` ${origin}`
}

/** No scripts, this one style sheet, no frames, and nothing from other origins. */
const policyOf = ({ goesTo }: Page): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    'img-src data:',
    `form-action 'self'${formTarget(goesTo)}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')

export const headersOf = (page: Page): Readonly<Record<string, string>> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policyOf(page),
  'cache-control': 'no-store',
  // Forms need a Referer for the check of their origin; other sites must not receive the addresses of these pages.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
  ...page.headers,
})

export const textOf = ({ title, body }: Page): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Payment ledger</title>
<link rel="icon" href="${ICON}">
<style>${{ markup: STYLE }}</style>
</head>
<body>
<header>
<svg viewBox="0 0 16 16" width="28" height="28" aria-hidden="true"><rect width="16" height="16" rx="4"/><path d="M4 5h8M4 8h8M4 11h5"/></svg>
<span>Payment ledger</span>
</header>
<main>
${body}
</main>
</body>
</html>
`.markup

export const sendPage = (response: ServerResponse, page: Page): void => {
  response.writeHead(page.status ?? 200, headersOf(page)).end(textOf(page))
}
