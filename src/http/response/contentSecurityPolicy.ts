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
