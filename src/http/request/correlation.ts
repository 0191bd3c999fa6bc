import { isSpanContextValid, trace } from '@opentelemetry/api'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

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

/** The span that this request is processed in; undefined without an exporter of traces. */
const activeTraceparent = (): string | undefined => {
  const span = trace.getActiveSpan()?.spanContext()
  if (span === undefined || !isSpanContextValid(span)) return undefined
  return `${KNOWN_VERSION}-${span.traceId}-${span.spanId}-0${span.traceFlags & SAMPLED}`
}

/** The trace context of the request's events: its span here, or without an exporter the caller's own. */
export const traceparentOf = (req: IncomingMessage): string | undefined => activeTraceparent() ?? sentTraceparentOf(req)

const TRACE_ID_AT = [3, 35] as const
/** The id of the request's trace, for its line in the log. */
export const traceIdOf = (req: IncomingMessage): string | undefined => traceparentOf(req)?.slice(...TRACE_ID_AT)

/** W3C Trace Context §3.2: a later version is passed on as version 00. A malformed header counts as absent. */
const sentTraceparentOf = ({ headersDistinct }: IncomingMessage): string | undefined => {
  const [header = '', ...others] = headersDistinct['traceparent'] ?? []
  const [match, version, ids, flags = '', rest] = TRACEPARENT.exec(header) ?? []
  if (match === undefined || others.length > 0) return undefined
  if (version === KNOWN_VERSION) return rest === undefined ? header : undefined
  const sampled = Number.parseInt(flags, 16) & SAMPLED
  return `${KNOWN_VERSION}-${ids}-0${sampled}`
}
