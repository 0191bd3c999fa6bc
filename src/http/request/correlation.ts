import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const CORRELATION_ID = /^[A-Za-z0-9._-]{8,128}$/
// Version ff is none, and neither id may be all zeros.
export const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const KNOWN_VERSION = '00'
const SAMPLED = 1

/** The caller's correlation id when it is one, else a new one: what came in otherwise is never echoed. */
export const correlationIdOf = ({ headers }: IncomingMessage): string => {
  const given = headers['x-correlation-id']
  return typeof given === 'string' && CORRELATION_ID.test(given) ? given : randomUUID()
}

/**
 * W3C Trace Context §3.2: of a later version the ids and the sampled flag are read, whatever follows them, and passed on
 * in the version that is known here. Anything else is treated as absent.
 */
export const traceparentOf = ({ headersDistinct }: IncomingMessage): string | undefined => {
  const [given = '', ...others] = headersDistinct['traceparent'] ?? []
  const [found, version, ids, flags = '', rest] = TRACEPARENT.exec(given) ?? []
  if (found === undefined || others.length > 0) return undefined
  if (version === KNOWN_VERSION) return rest === undefined ? given : undefined
  const sampled = Number.parseInt(flags, 16) & SAMPLED
  return `${KNOWN_VERSION}-${ids}-0${sampled}`
}
