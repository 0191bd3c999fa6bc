import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** The correlation id and the trace context of a request. */

export const CORRELATION_ID = /^[A-Za-z0-9._-]{8,128}$/
// Version ff is invalid, and so is an id of zeros.
export const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const KNOWN_VERSION = '00'
const SAMPLED = 1

/** The caller's correlation id if it is well-formed, else a new one; malformed ids are never echoed. */
export const correlationIdOf = ({ headers }: IncomingMessage): string => {
  const header = headers['x-correlation-id']
  return typeof header === 'string' && CORRELATION_ID.test(header) ? header : randomUUID()
}

/**
 * W3C Trace Context §3.2: from a later version the ids and the sampled flag are read, and passed on as version 00. A
 * malformed header counts as absent.
 */
export const traceparentOf = ({ headersDistinct }: IncomingMessage): string | undefined => {
  const [header = '', ...others] = headersDistinct['traceparent'] ?? []
  const [found, version, ids, flags = '', rest] = TRACEPARENT.exec(header) ?? []
  if (found === undefined || others.length > 0) return undefined
  if (version === KNOWN_VERSION) return rest === undefined ? header : undefined
  const sampled = Number.parseInt(flags, 16) & SAMPLED
  return `${KNOWN_VERSION}-${ids}-0${sampled}`
}
