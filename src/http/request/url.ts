import { originFormOf } from '../server/framing.ts'

/** Characters in percent-encoding, as many as stand together; or what cannot be any. */
const ENCODED = /(?:%[\da-f]{2})+|%/gi
/** U+FFFD, which stands for what is no character. */
const REPLACEMENT = '%EF%BF%BD'

const decodes = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

// A path that does not decode would be refused before anybody asks who is calling, and as no path of ours, also where it
// only has a bad id or key in it.
const decodable = (path: string): string =>
  decodes(path) ? path : path.replaceAll(ENCODED, run => (decodes(run) ? run : REPLACEMENT))

/**
 * The path and the query alone. A percent-encoded colon is the colon: `/invoices/inv_…%3Aapprove` is the same resource
 * path (RFC 3986 §6.2.2).
 */
export const normalizeUrl = (target: string, method: string): string => {
  const url = originFormOf(target, method) ?? target
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  if (!path.includes('%')) return url
  return decodable(path).replaceAll(/%3a/gi, ':') + (question < 0 ? '' : url.slice(question))
}
