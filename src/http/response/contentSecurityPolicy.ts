/** The policy of each kind of page. There are no CORS headers, so scripts of other origins read no response. */

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

/** The console: scripts and requests of here and the issuer; no markup from strings but lit-html's templates. */
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
