import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { ENVELOPE_PATH, schemaDocuments } from '../../src/http/contract/factSchemas.ts'
import type { Json, JsonObject } from '../../src/ports.ts'

/**
 * Holds every fact that a test sees, over HTTP or in Kafka, against its published schema; and more strictly than a consumer
 * may: what the schema does not declare must not be sent.
 */

const addFormats = addFormatsModule.default

const isObject = (node: Json | undefined): node is JsonObject =>
  typeof node === 'object' && node !== null && !Array.isArray(node)

/** The schema without its openness: `additionalProperties: true` is the promise that there will be more. */
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

/** Whether the fact is of the type that its schema is of, as `dataschema` leads there. */
const mislabelled = ({ type, dataschema }: Fact): string | undefined =>
  pathOf(dataschema).replace(/\.v\d+\.json$/, '') === `/schemas/${type}`
    ? undefined
    : `${dataschema} is no schema of ${type}`

const complaintAbout = (ajv: Ajv2020, event: Fact): string | undefined =>
  complaintOf(ajv, ENVELOPE_PATH, event) ?? mislabelled(event) ?? complaintOf(ajv, pathOf(event.dataschema), event.data)

/** What a consumer who keeps to the published schemas has against the fact; undefined when nothing. */
export const consumersComplaint = (event: Fact): string | undefined => complaintAbout(published, event)

/** How many facts of each schema this run has seen, by their way. */
export const seenFacts = new Map<string, number>()

/** Throws when the fact is not what its schema says, or more. */
export const checkFact = (event: Fact, way: 'page' | 'stream' | 'kafka'): void => {
  const found = complaintAbout(strict, event)
  if (found !== undefined)
    throw new Error(`A fact (${way}) that is not as published: ${found} in ${JSON.stringify(event)}`)
  const key = `${way} ${event.dataschema}`
  seenFacts.set(key, (seenFacts.get(key) ?? 0) + 1)
}

export type Message = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

/** The binary mode of the Kafka binding, undone. Throws for a header that is no attribute of the envelope. */
export const eventIn = ({ key, headers, value }: Message): Fact => {
  const { 'content-type': datacontenttype, traceparent, ...others } = headers
  const attributes = Object.entries(others).map(([name, text]) => {
    if (!name.startsWith('ce_')) throw new Error(`A message with the undeclared header ${name}.`)
    return [name.slice('ce_'.length), text] as const
  })
  const { partitionkey, ...event } = Object.fromEntries(attributes)
  if (partitionkey !== key) throw new Error(`A message with the key ${key}, of ${partitionkey}.`)
  const trace = traceparent === undefined ? {} : { traceparent }
  // What is missing is found by who checks the envelope.
  return { ...event, partitionkey, datacontenttype, ...trace, data: JSON.parse(value) as unknown } as Json as Fact
}

export const checkMessage = (message: Message): void => checkFact(eventIn(message), 'kafka')

export type Sent = { readonly id: string; readonly event: string; readonly data: Fact }

/** The facts in whole blocks of an event stream; a comment has none. Each is checked. */
export const sentIn = (block: string): Sent[] => {
  if (block.startsWith(':')) return []
  const lines = block.split('\n').map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)])
  const [[, id = ''] = [], [, event = ''] = [], [, data = ''] = []] = lines
  if (lines.map(([name]) => name).join() !== 'id,event,data') throw new Error(`No event of this stream: ${block}`)
  const fact = JSON.parse(data) as Fact
  checkFact(fact, 'stream')
  return [{ id, event, data: fact }]
}
