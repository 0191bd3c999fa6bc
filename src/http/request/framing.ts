import type { IncomingMessage } from 'node:http'
import { Problem } from '../problems/problemCatalogue.ts'

/** Framing checks: refuses requests that Node accepts but another HTTP implementation may parse differently. */

export const HEADERS_MAX_BYTES = 16 * 1024
export const URL_MAX_CHARS = 8 * 1024
/** The colon, the space and the line end of each header line. */
const LINE_EXTRA_BYTES = 4

/** origin-form (RFC 9112 §3.2.1); a fragment is never sent. */
const ORIGIN_FORM = /^\/[^#]*$/
/** A host name or address, and an optional port (RFC 9110 §7.2). */
const AUTHORITY = String.raw`(?:[\w.~!$&'()*+;=%-]+|\[[\da-f:.]+\])(?::\d{0,5})?`
const HOST = new RegExp(`^${AUTHORITY}$`, 'i')
/** The scheme and authority of the absolute-form, without user information (RFC 9110 §4.2.4). */
const ABSOLUTE_FORM = new RegExp(`^https?://${AUTHORITY}(?=[/?]|$)`, 'i')
const VERSIONS: readonly string[] = ['1.0', '1.1']

/** The target in origin-form; `*` stays as it is. Undefined for any other form. */
const originFormOf = (target: string, method: string): string | undefined => {
  if (target === '*') return method === 'OPTIONS' ? target : undefined
  const path = target.replace(ABSOLUTE_FORM, '')
  const origin = path.startsWith('/') ? path : `/${path}`
  return (path === target && !target.startsWith('/')) || !ORIGIN_FORM.test(origin) ? undefined : origin
}

// The connection is closed with the response, since the end of this message is uncertain.
const fault = (detail: string): Problem =>
  new Problem('bad_request_framing', { detail, headers: { Connection: 'close' } })

const countOf = ({ rawHeaders }: IncomingMessage, name: string): number =>
  rawHeaders.filter((header, index) => index % 2 === 0 && header.toLowerCase() === name).length

const headBytesOf = ({ rawHeaders }: IncomingMessage): number =>
  rawHeaders.reduce((bytes, text) => bytes + text.length, (rawHeaders.length / 2) * LINE_EXTRA_BYTES)

/** Duplicate or malformed framing headers: a proxy may have parsed the request differently (request smuggling). */
export const framingFault = (req: IncomingMessage): Problem | undefined => {
  const { url = '', method = '', httpVersion, headers } = req
  if (url.length > URL_MAX_CHARS)
    return new Problem('uri_too_long', { detail: `A URL may have at most ${URL_MAX_CHARS} characters.` })
  if (headBytesOf(req) > HEADERS_MAX_BYTES)
    return new Problem('headers_too_large', { detail: `Headers may have at most ${HEADERS_MAX_BYTES} bytes.` })
  if (!VERSIONS.includes(httpVersion)) return fault('Expected HTTP/1.1 or HTTP/1.0.')
  if (originFormOf(url, method) === undefined)
    return fault('The request target must be a path or an absolute http URL.')
  if (countOf(req, 'host') !== 1 || !HOST.test(headers.host ?? '')) return fault('Send exactly one valid Host header.')
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
    return fault('The only supported transfer coding is chunked, in HTTP/1.1.')
  if ((headers.expect ?? '100-continue').toLowerCase() !== '100-continue')
    return fault('The only supported expectation is Expect: 100-continue.')
  if (countOf(req, 'authorization') > 1) return new Problem('multiple_credentials')
  if (countOf(req, 'content-type') > 1) return fault('Send exactly one Content-Type header.')
  return undefined
}

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
