import { type Context, context, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api'
import type { JsonObject } from '../ports.ts'

/** The trace context that events carry in their metadata, as `traceparent` of W3C Trace Context. */

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const SAMPLED = 1

/** The context of a sampled trace; undefined without one, so nothing is done for events of other requests. */
export const sampledContextOf = ({ traceparent }: JsonObject): SpanContext | undefined => {
  if (typeof traceparent !== 'string') return undefined
  const [, traceId, spanId, flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  const traceFlags = Number.parseInt(flags, 16)
  if (traceId === undefined || spanId === undefined || (traceFlags & SAMPLED) === 0) return undefined
  return { traceId, spanId, traceFlags, isRemote: true }
}

/** The context whose active span is the one that the events were appended in. */
export const remoteContext = (span: SpanContext): Context => trace.setSpanContext(ROOT_CONTEXT, span)

/** Runs `work` outside of any trace, so its spans begin a new one. */
export const outsideTraces = <T>(work: () => T): T => context.with(ROOT_CONTEXT, work)
