import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { ENVELOPE_PATH, schemaDocuments } from '../../src/http/contract/factSchemas.ts'
import type { Json, JsonObject } from '../../src/ports.ts'
import { checkServerSentEvent } from './asyncapiCheck.ts'

/**
 * Checks every fact of a test, over HTTP or in Kafka, against its published schema, and more strictly than consumers:
 * members that the schema does not declare are errors.
 */

const addFormats = addFormatsModule.default

const isObject = (node: Json | undefined): node is JsonObject =>
  typeof node === 'object' && node !== null && !Array.isArray(node)

/** The schema with `additionalProperties: false`. The published `true` permits future members. */
export const closed = (node: Json): Json => {
  if (Array.isArray(node)) return node.map(closed)
  if (!isObject(node)) return node
  const inner = Object.entries(node).map(([name, value]) => [name, name === 'examples' ? value : closed(value)])
  const schema = Object.fromEntries(inner) as JsonObject
  return schema['additionalProperties'] === true ? { ...schema, additionalProperties: false } : schema
}

const validatorsOf = (documents: Iterable<readonly [string, JsonObject]>): Ajv2020 => {
  const ajv = new Ajv2020({ strict: true, allErrors: true, strictRequired: false })
  addFormats(ajv)
  for (const [path, document] of documents) ajv.addSchema(document, path)
  return ajv
}

const published = validatorsOf(schemaDocuments)
const strict = validatorsOf([...schemaDocuments].map(([path, document]) => [path, closed(document) as JsonObject]))

const complaintOf = (ajv: Ajv2020, path: string, value: unknown): string | undefined => {
  const validate = ajv.getSchema(path)
  if (validate === undefined) return `no schema is published at ${path}`
  return validate(value) === true ? undefined : ajv.errorsText(validate.errors)
}

export type Fact = {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly dataschema: string
  readonly data: unknown
}

const pathOf = (uri: string): string => (URL.canParse(uri) ? new URL(uri).pathname : uri)

/** The mismatch between the fact's type and the type of its `dataschema`. */
const mislabelled = ({ type, dataschema }: Fact): string | undefined =>
  pathOf(dataschema).replace(/\.v\d+\.json$/, '') === `/schemas/${type}`
    ? undefined
    : `${dataschema} is no schema of ${type}`

const complaintAbout = (ajv: Ajv2020, event: Fact): string | undefined =>
  complaintOf(ajv, ENVELOPE_PATH, event) ?? mislabelled(event) ?? complaintOf(ajv, pathOf(event.dataschema), event.data)

/** The violation that a consumer with the published schema would find; undefined if none. */
export const consumersComplaint = (event: Fact): string | undefined => complaintAbout(published, event)

/** The number of facts by schema and transport. */
export const seenFacts = new Map<string, number>()

/** Throws if the fact violates its schema or has undeclared members. */
export const checkFact = (event: Fact, transport: 'page' | 'stream' | 'kafka'): void => {
  const actual = complaintAbout(strict, event)
  if (actual !== undefined)
    throw new Error(`A fact (${transport}) that violates its schema: ${actual} in ${JSON.stringify(event)}`)
  const key = `${transport} ${event.dataschema}`
  seenFacts.set(key, (seenFacts.get(key) ?? 0) + 1)
}

export type Message = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

/** The fact of a Kafka message in binary mode. Throws for a header that is not an attribute of the envelope. */
export const eventIn = ({ key, headers, value }: Message): Fact => {
  const { 'content-type': datacontenttype, traceparent, ...others } = headers
  const attributes = Object.entries(others).map(([name, text]) => {
    if (!name.startsWith('ce_')) throw new Error(`A message with the undeclared header ${name}.`)
    return [name.slice('ce_'.length), text] as const
  })
  const { partitionkey, ...event } = Object.fromEntries(attributes)
  if (partitionkey !== key) throw new Error(`A message with the key ${key}, of ${partitionkey}.`)
  const trace = traceparent === undefined ? {} : { traceparent }
  // Missing members are found by the check of the envelope.
  return { ...event, partitionkey, datacontenttype, ...trace, data: JSON.parse(value) as unknown } as Json as Fact
}

export const checkMessage = (message: Message): void => checkFact(eventIn(message), 'kafka')

export type Sent = { readonly id: string; readonly event: string; readonly data: Fact }

/** The facts in complete blocks of an event stream, each checked; comments have none. */
export const sentIn = (block: string): Sent[] => {
  if (block.startsWith(':')) return []
  const lines = block.split('\n').map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)])
  const [[, id = ''] = [], [, event = ''] = [], [, data = ''] = []] = lines
  if (lines.map(([name]) => name).join() !== 'id,event,data') throw new Error(`No event of this stream: ${block}`)
  const fact = JSON.parse(data) as Fact
  checkFact(fact, 'stream')
  checkServerSentEvent(fact)
  return [{ id, event, data: fact }]
}
