import type { CloudEvent } from '../../streams/facts.ts'
import type { FactMessage } from '../ports.ts'

/**
 * A CloudEvent in the binary mode of the Kafka binding. Headers that are made from a list of names cost several times
 * as much.
 */
export const factMessageOf = (topic: string, event: CloudEvent): FactMessage => ({
  topic,
  key: event.partitionkey,
  headers: {
    ce_specversion: event.specversion,
    ce_id: event.id,
    ce_source: event.source,
    ce_type: event.type,
    ce_subject: event.subject,
    ce_time: event.time,
    ce_dataschema: event.dataschema,
    ce_partitionkey: event.partitionkey,
    ce_sequence: event.sequence,
    ce_position: event.position,
    ce_correlationid: event.correlationid,
    ce_causationid: event.causationid,
    ce_tenantid: event.tenantid,
    'content-type': event.datacontenttype,
    ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
  } satisfies Headers,
  value: JSON.stringify(event.data),
})

/** Fails to compile when an attribute of the envelope has no header. */
type Headers = {
  readonly [A in Exclude<keyof CloudEvent, 'data' | 'datacontenttype' | 'traceparent'> as `ce_${A}`]: string
} & { readonly 'content-type': string; readonly traceparent?: string }
