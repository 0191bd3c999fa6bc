import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export const CORRELATION_ID = /^[A-Za-z0-9._-]{8,128}$/
// Version ff is none, and neither id may be all zeros.
export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The caller's correlation id when it is one, else a new one: what came in otherwise is never echoed. */
export const correlationIdOf = ({ headers }: IncomingMessage): string => {
  const given = headers['x-correlation-id']
  return typeof given === 'string' && CORRELATION_ID.test(given) ? given : randomUUID()
}

/** W3C Trace Context; anything else is treated as absent. */
export const traceparentOf = ({ headers }: IncomingMessage): string | undefined => {
  const given = headers['traceparent']
  return typeof given === 'string' && TRACEPARENT.test(given) ? given : undefined
}
