import { cloudEventSchema, type FactKind, schemaPathOf } from '../../../streams/facts.ts'
import type { JsonObject } from '../../ports.ts'
import { ENVELOPE_PATH, factKinds, schemaDocuments } from './factSchemas.ts'

/** The messages of asyncapi.json and their schemas: each kind of fact as a Kafka message and as a server-sent event. */

export type Named = Readonly<Record<string, JsonObject>>

const nameOf = (path: string): string => path.slice('/schemas/'.length, -'.json'.length)
export const kindName = (kind: FactKind): string => nameOf(schemaPathOf(kind))
export const reference = (...path: readonly string[]): JsonObject => ({ $ref: `#/${path.join('/')}` })
const schemaReference = (name: string): JsonObject => reference('components', 'schemas', name)

/** The published schemas, without `$id` and `$schema`, since they are embedded in this document. */
const payloads: Named = Object.fromEntries(
  [...schemaDocuments].map(([path, { $schema: _, $id: __, ...schema }]) => [
    nameOf(path),
    { ...schema, 'x-published-at': path },
  ]),
)

const textHeader = (description: string): JsonObject => ({ type: 'string', description })

/** The headers of the binary content mode of CloudEvents in Kafka; the value of a message is the data alone. */
const kafkaHeaders = (): JsonObject => {
  const { data: _, datacontenttype: __, traceparent, ...attributes } = cloudEventSchema.shape
  const properties = Object.fromEntries(
    Object.entries(attributes).map(([name, schema]) => [`ce_${name}`, textHeader(schema.description ?? '')]),
  )
  return {
    type: 'object',
    properties: {
      ...properties,
      'content-type': { type: 'string', const: 'application/json' },
      traceparent: textHeader(traceparent.description ?? ''),
    },
    required: [...Object.keys(properties), 'content-type'],
    additionalProperties: true,
  }
}

const constants = (kind: FactKind, prefix: string): JsonObject => ({
  [`${prefix}type`]: { const: kind.type },
  [`${prefix}dataschema`]: { pattern: `^https?://[^/]+${RegExp.escape(schemaPathOf(kind))}$` },
})

const inKafka = (kind: FactKind): JsonObject => ({
  name: kind.type,
  title: kind.title,
  summary: kind.description,
  contentType: 'application/json',
  headers: {
    allOf: [schemaReference('kafka-headers'), { type: 'object', properties: constants(kind, 'ce_') }],
  },
  payload: schemaReference(kindName(kind)),
  bindings: {
    kafka: {
      key: {
        type: 'string',
        description: 'The id of the resource that the fact is about, which is ce_subject and ce_partitionkey.',
      },
      bindingVersion: '0.5.0',
    },
  },
  examples: [{ name: kindName(kind), payload: kind.example }],
})

const overHttp = (kind: FactKind): JsonObject => ({
  name: kind.type,
  title: kind.title,
  summary: kind.description,
  contentType: 'application/json',
  payload: {
    allOf: [
      schemaReference(nameOf(ENVELOPE_PATH)),
      { type: 'object', properties: { ...constants(kind, ''), data: schemaReference(kindName(kind)) } },
    ],
  },
})

const HTTP = 'http.'
export const messageName = (server: 'kafka' | 'http', kind: FactKind): string =>
  (server === 'http' ? HTTP : '') + kindName(kind)

/** The message about a dead letter: the fact's headers, and the reason instead of its data. */
export const DEAD_LETTER = 'dead-letter'
const deadLetter: JsonObject = {
  name: DEAD_LETTER,
  title: 'A fact could not be delivered',
  summary: 'Published at least once, when a fact is parked. The fact itself is delivered when an operator releases it.',
  contentType: 'application/json',
  headers: {
    allOf: [
      schemaReference('kafka-headers'),
      {
        type: 'object',
        properties: {
          dead_letter_reason: textHeader('The reason for which the fact could not be delivered.'),
          dead_letter_attempts: textHeader('The number of attempts. 0: the fact waits behind another one of its key.'),
        },
        required: ['dead_letter_reason', 'dead_letter_attempts'],
      },
    ],
  },
  payload: {
    type: 'object',
    properties: {
      position: textHeader('The position of the event in the log.'),
      key: textHeader('The id of the resource. Later facts of the same resource wait, too.'),
      event_id: textHeader('The id of the fact, which is ce_id.'),
      type: textHeader('The type of the fact, which is ce_type.'),
      reason: textHeader('The reason for which the fact could not be delivered.'),
      attempts: { type: 'integer', minimum: 0 },
      first_failed_at: { type: 'string', format: 'date-time' },
    },
    required: ['position', 'key', 'event_id', 'type', 'reason', 'attempts', 'first_failed_at'],
    additionalProperties: true,
  },
}

export const messages: Named = {
  [DEAD_LETTER]: deadLetter,
  ...Object.fromEntries(factKinds.map(kind => [kindName(kind), inKafka(kind)])),
  ...Object.fromEntries(factKinds.map(kind => [`${HTTP}${kindName(kind)}`, overHttp(kind)])),
}

export const schemas: Named = { ...payloads, 'kafka-headers': kafkaHeaders() }
