import { type Span, type SpanContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { StoredEvent } from '../ports.ts'
import { outsideTraces, remoteContext, sampledContextOf } from './traceContext.ts'

/** A batch has events of many requests, so it is a trace of its own, linked to a span in the trace of each of them. */

/** Further requests of a batch have no spans, so a batch of thousands costs no more than this. */
const TRACES_PER_BATCH_MAX = 128

const tracer = trace.getTracer('payment-ledger')

const contextsOf = (events: readonly StoredEvent[]): readonly SpanContext[] => {
  const byTrace = new Map<string, SpanContext>()
  for (const { metadata } of events) {
    const context = sampledContextOf(metadata)
    if (context !== undefined) byTrace.set(context.traceId, context)
    if (byTrace.size === TRACES_PER_BATCH_MAX) break
  }
  return [...byTrace.values()]
}

const endAll = (spans: readonly Span[], error?: unknown): void => {
  for (const span of spans) {
    if (error !== undefined)
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'error' })
    span.end()
  }
}

/** Processes the batch of a feed in spans, if any of its events belongs to a sampled trace. */
export const inBatchTrace = async (
  feed: string,
  events: readonly StoredEvent[],
  work: () => Promise<void>,
): Promise<void> => {
  const contexts = contextsOf(events)
  if (contexts.length === 0) return work()
  const options = {
    kind: SpanKind.CONSUMER,
    links: contexts.map(context => ({ context })),
    attributes: { 'messaging.system': 'eventstoredb', 'messaging.batch.message_count': events.length },
  }
  return outsideTraces(() =>
    tracer.startActiveSpan(`process batch ${feed}`, options, async batch => {
      const links = [{ context: batch.spanContext() }]
      const parts = contexts.map(parent =>
        tracer.startSpan(`process ${feed}`, { kind: SpanKind.CONSUMER, links }, remoteContext(parent)),
      )
      try {
        await work()
        endAll([...parts, batch])
      } catch (error) {
        endAll([...parts, batch], error)
        throw error
      }
    }),
  )
}
