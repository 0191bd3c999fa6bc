import { z } from 'zod'
import type { AnyEvent } from './decider.ts'
import type { Recorded } from './envelope.ts'
import { positionMember, textMember, timeMember } from './factMembers.ts'

/** The form of published facts, and how events announce them. */

/** Published facts. Their meaning is part of the contract, so a changed meaning is a new version. */
export const FACT_TYPES = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'invoice.voided',
  'payment.succeeded',
  'payment.failed',
  'payment.refunded',
  'export.completed',
  'ledger.manifest',
] as const
export type FactType = (typeof FACT_TYPES)[number]

type FactValue = string | number | null | readonly FactValue[] | { readonly [key: string]: FactValue }
/** JSON. Amounts are in minor units as in the event, always with the currency's exponent. */
export type FactData = { readonly [key: string]: FactValue }
export type Fact = { readonly type: FactType; readonly version: number; readonly data: FactData }

/** The description of one fact at one version; GET /schemas and asyncapi.json are made from these. */
export type FactKind = {
  readonly type: FactType
  readonly version: number
  readonly title: string
  /** The moment of publication and the conclusion that a consumer may draw. */
  readonly description: string
  /**
   * The schema of the data. It is closed here, so nothing undeclared is sent, and published as open, because
   * members may be added.
   */
  readonly schema: z.ZodObject
  readonly example: FactData
}

/** The fact that an event announces, and the function that makes it. */
export type Announcement<E> = FactKind & { readonly data: (recorded: Recorded<E>) => FactData }

/** Gives members that the schema does not have the type `never`, so they do not compile. */
type Exactly<D, S> = { readonly [K in Exclude<keyof D, keyof S>]: never }
type Declaration<E, S extends z.ZodObject, D> = Omit<FactKind, 'schema' | 'example'> & {
  readonly schema: S
  readonly example: z.input<S> & FactData
  readonly data: (recorded: Recorded<E>) => D & Exactly<D, z.input<S>> & FactData
}

/** Checks a fact's data and its example against the schema at compile time. */
export const announces = <E, S extends z.ZodObject, D extends z.input<S>>(
  declaration: Declaration<E, S, D>,
): Announcement<E> => declaration

/** A total map: events without a fact are marked 'internal'. */
export type FactMap<E extends AnyEvent> = {
  readonly [T in E['type']]: 'internal' | Announcement<Extract<E, { type: T }>>
}

export const factOf = <E extends AnyEvent>(facts: FactMap<E>, recorded: Recorded<E>): Fact | undefined => {
  const announced = facts[recorded.event.type as E['type']]
  if (announced === 'internal') return undefined
  const { type, version, data } = announced as Announcement<E>
  return { type, version, data: data(recorded) }
}

export const kindsIn = (facts: Readonly<Record<string, 'internal' | FactKind>>): readonly FactKind[] =>
  Object.values(facts).filter(fact => fact !== 'internal')

/** The path of the schema of its data, below the service's address; the path of `dataschema`. */
export const schemaPathOf = ({ type, version }: Pick<FactKind, 'type' | 'version'>): string =>
  `/schemas/${type}.v${version}.json`

/** CloudEvents 1.0 in its JSON form, with the ledger's extension attributes. */
export type CloudEvent = {
  readonly specversion: '1.0'
  readonly id: string
  readonly source: string
  readonly type: FactType
  readonly subject: string
  readonly time: string
  readonly datacontenttype: 'application/json'
  /** A path here; `withSchemaBaseUrl` makes it an absolute URI before it is published. */
  readonly dataschema: string
  readonly partitionkey: string
  readonly sequence: string
  /** The position of its event in the log; manifests count facts by it. */
  readonly position: string
  readonly correlationid: string
  readonly causationid: string
  readonly tenantid: string
  readonly traceparent?: string
  readonly data: FactData
}

const traceparentSchema = z.string().regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)

/** The schema of the envelope. Consumers skip types that they do not know. */
export const cloudEventSchema = z.object({
  specversion: z.literal('1.0').meta({ description: 'The version of CloudEvents.' }),
  id: z.uuid().meta({ description: 'The id of the fact, the same at every delivery.' }),
  source: textMember('The ledger. Source and id together are unique.'),
  type: textMember('The type of the fact. Ignore unknown types: others may be added.').meta({
    examples: [...FACT_TYPES],
  }),
  subject: textMember('The id of the resource that the fact is about.'),
  time: timeMember('The time of the event.'),
  datacontenttype: z.literal('application/json'),
  dataschema: z
    .url()
    .meta({ description: 'The absolute URI of the JSON Schema of the data, which names type and version.' }),
  partitionkey: textMember('Equal to the subject. Facts of one subject are delivered in order.'),
  sequence: z
    .string()
    .regex(/^\d{20}$/)
    .meta({
      description:
        'Increases with every fact of the subject, and sorts as text. Events that are not published leave gaps.',
    }),
  position: positionMember('The position of the event.'),
  correlationid: textMember('The correlation id of the request that caused the fact.'),
  causationid: textMember('The id of the command or event that caused the fact.'),
  tenantid: textMember('The tenant of the fact.'),
  traceparent: traceparentSchema.meta({ description: 'W3C Trace Context of the request, if any.' }).optional(),
  data: z.record(z.string(), z.unknown()).meta({ description: 'The data, described by dataschema.' }),
} satisfies Record<keyof CloudEvent, z.ZodType>)

/** The fact as it is published by a service at `base`: CloudEvents 1.0 requires an absolute URI as `dataschema`. */
export const withSchemaBaseUrl = (event: CloudEvent, base: string): CloudEvent => ({
  ...event,
  dataschema: `${base}${event.dataschema}`,
})

export const SOURCE = '/payment-ledger'
/** Digits enough for every unsigned 64-bit revision, so sequences sort as text. */
const SEQUENCE_DIGITS = 20

export const cloudEventOf = <E extends AnyEvent>(recorded: Recorded<E>, fact: Fact): CloudEvent => ({
  specversion: '1.0',
  id: recorded.eventId,
  source: SOURCE,
  type: fact.type,
  subject: recorded.id,
  time: recorded.metadata.at,
  datacontenttype: 'application/json',
  dataschema: schemaPathOf(fact),
  partitionkey: recorded.id,
  sequence: recorded.revision.toString().padStart(SEQUENCE_DIGITS, '0'),
  position: recorded.position.toString(),
  correlationid: recorded.metadata.correlationId,
  causationid: recorded.metadata.causationId,
  tenantid: recorded.metadata.tenant,
  ...(recorded.metadata.traceparent === undefined ? {} : { traceparent: recorded.metadata.traceparent }),
  data: fact.data,
})
