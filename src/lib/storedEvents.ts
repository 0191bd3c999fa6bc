import { z } from 'zod'
import type { Codec } from '../../streams/codec.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Decided, Metadata, Recorded } from '../../streams/envelope.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { JsonObject, NewEvent, StoredEvent } from '../ports.ts'

/** `$correlationId` and `$causationId` are EventStoreDB's convention, for its tools. */
const storedMetadata = z.object({
  tenant: z.string(),
  subject: z.string(),
  client: z.string(),
  workload: z.literal(true).optional(),
  authority: z.string(),
  $correlationId: z.string(),
  $causationId: z.string(),
  traceparent: z.string().optional(),
  at: z.string(),
  schemaVersion: z.int(),
})

const metadataOf = (stored: JsonObject): Metadata => {
  const members = storedMetadata.parse(stored)
  const { tenant, subject, client, workload, authority, at, schemaVersion, traceparent } = members
  const ids = { correlationId: members.$correlationId, causationId: members.$causationId }
  const metadata: Metadata = { tenant, subject, client, authority, at, schemaVersion, ...ids }
  if (workload === undefined && traceparent === undefined) return metadata
  return { ...metadata, ...(workload && { workload }), ...(traceparent !== undefined && { traceparent }) }
}

/** Throws UnknownEvent or ZodError: an event that this build cannot read must not be skipped. */
export const recordedOf = <E extends AnyEvent>(codec: Pick<Codec<E>, 'decode'>, stored: StoredEvent): Recorded<E> => {
  const metadata = metadataOf(stored.metadata)
  return {
    event: codec.decode(stored.type, stored.data, metadata.schemaVersion),
    eventId: stored.id,
    id: partsOf(stored.stream).id,
    revision: stored.revision,
    position: stored.position,
    metadata,
    storedAt: stored.storedAt,
  }
}

export const newEventOf = <E extends AnyEvent>(codec: Codec<E>, { event, eventId, metadata }: Decided<E>): NewEvent => {
  const { data, schemaVersion } = codec.encode(event)
  const { correlationId, causationId, ...rest } = metadata
  return {
    id: eventId,
    type: event.type,
    data: data as JsonObject,
    metadata: { ...rest, schemaVersion, $correlationId: correlationId, $causationId: causationId },
  }
}
