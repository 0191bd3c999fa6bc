/**
 * Removes secrets from the lines of the log and the findings of `ledger doctor`. No text is meant to have one: errors of
 * libraries quote connection strings and headers, and what they quote is not known here. Secrets are recognised by their
 * form and not by their value, because a password may be an ordinary word.
 */

type Redaction = readonly [pattern: RegExp, replacement: string]

/** The password of a connection string or another URL. */
const URL_PASSWORD = /([a-z][a-z0-9+.-]*:\/\/[^\s:/@"\\]*):[^\s/@"\\]+@/gi
const URL_MARK = '://'

const REDACTIONS: readonly Redaction[] = [
  [/\b(Bearer|Basic|DPoP)\s+[\w.~+/=-]{8,}/g, '$1 …'],
  // JSON Web Tokens: header and claims are JSON objects in base64url.
  [/\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, '…'],
  [/-----BEGIN[A-Z ]*PRIVATE KEY-----[^-]*(?:-----END[A-Z ]*PRIVATE KEY-----)?/g, '…'],
  // A private key in base64: the beginning of PKCS#8 for Ed25519, elliptic curves and RSA.
  [/\bM[\w+/]{2,6}(?:CAQAw|AgEAM|IBADA)[\w+/=]{24,}/g, '…'],
  // API keys keep their id, by which an operator finds them.
  [/\b(lk_[a-z]+_[0-9A-Za-z]+)_[\w-]+/g, '$1_…'],
  // In JSON, and in JSON as a text within JSON.
  [/(\\?"(?:password|client_secret|secret|pepper|authorization|cookie|x-api-key)\\?"\s*:\s*\\?")[^"\\]+/gi, '$1…'],
]

/** The line without what is recognised as a secret. */
export const withoutSecrets = (line: string): string => {
  // Most lines have no URL, and this pattern alone would take longer than all others.
  let redacted = line.includes(URL_MARK) ? line.replace(URL_PASSWORD, '$1:…@') : line
  for (const [pattern, replacement] of REDACTIONS) redacted = redacted.replace(pattern, replacement)
  return redacted
}
