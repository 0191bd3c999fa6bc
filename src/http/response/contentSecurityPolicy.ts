/**
 * The Content-Security-Policy of each kind of page that the API serves; pages of the embedded issuer have their own
 * (embedded/issuer/pages/page.ts). The API sends no CORS headers, so scripts of other origins cannot read its
 * responses.
 */

/** Pages of text: nothing is loaded, and nothing is executed. */
export const TEXT_PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

/** The documentation by Swagger UI: `data:` is for the icons in its style sheet. */
export const DOCS_PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/**
 * The console: scripts from here and its import map; requests to here and to the issuer; no markup from strings but the
 * templates of lit-html.
 */
export const consolePagePolicy = ({ importMapHash, issuer }: { importMapHash: string; issuer: string }): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${importMapHash}'`,
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self' ${issuer}`,
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types lit-html',
  ].join('; ')
