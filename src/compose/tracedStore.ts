import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { remoteContext, sampledContextOf } from '../feeds/traceContext.ts'
import type { EventStore } from '../ports.ts'

/** A span for each append of a sampled trace: all appends share one HTTP/2 stream, so instrumentation of gRPC sees none. */

const tracer = trace.getTracer('payment-ledger')

type Append = EventStore['append']

const ended = async (span: Span, appended: ReturnType<Append>): ReturnType<Append> => {
  try {
    const result = await appended
    span.setAttribute('ledger.append.ok', result.ok)
    return result
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'error' })
    throw error
  } finally {
    span.end()
  }
}

/** The parent of the span is the context in the events' metadata, which is that of the request that caused them. */
export const withTracedAppends = (store: EventStore): EventStore => ({
  ...store,
  append: (stream, events, expectedRevision) => {
    const parent = sampledContextOf(events[0]?.metadata ?? {})
    if (parent === undefined) return store.append(stream, events, expectedRevision)
    const attributes = { 'db.system': 'eventstoredb', 'db.operation.name': 'append', 'ledger.events': events.length }
    const name = `append ${stream.split('-')[0]}`
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, remoteContext(parent))
    return ended(span, store.append(stream, events, expectedRevision))
  },
})
