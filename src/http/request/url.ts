import { originFormOf } from './framing.ts'

/** A run of percent-encoded bytes, or a stray percent sign. */
const ENCODED = /(?:%[\da-f]{2})+|%/gi
/** U+FFFD, the replacement character. */
const REPLACEMENT = '%EF%BF%BD'

const decodes = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

// Express would refuse a path that does not decode as an unknown route, before authentication, even if only an id or a
// key in it is malformed.
const decodable = (path: string): string =>
  decodes(path) ? path : path.replaceAll(ENCODED, run => (decodes(run) ? run : REPLACEMENT))

/** The path and the query; `/invoices/inv_…%3Aapprove` is the same path as with a colon (RFC 3986 §6.2.2). */
export const normalizeUrl = (target: string, method: string): string => {
  const url = originFormOf(target, method) ?? target
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  if (!path.includes('%')) return url
  return decodable(path).replaceAll(/%3a/gi, ':') + (question < 0 ? '' : url.slice(question))
}
