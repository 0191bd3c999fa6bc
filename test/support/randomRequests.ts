import { randomOf } from './virtualWorld.ts'

/** Requests generated from openapi.json: valid ones, and ones with violations. */

export type Schema = {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}
type Parameter = { readonly in: string; readonly name: string; readonly required?: boolean; readonly schema: Schema }
type Operation = {
  readonly operationId: string
  readonly security?: readonly object[]
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}
export type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly parameters: Readonly<Record<string, Parameter>>
  }
}

export type RandomRequest = {
  readonly operation: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

const ODD_TEXTS = [
  ...['', ' ', '0', '-1', '1e9', 'null', 'true', '*', '"x"', 'W/"1"', '../..', '%00', '%', '/', '\\', "';--", '${x}'],
  ...['é', '日本', '𝄞', '\u202e', '__proto__', 'constructor', 'x'.repeat(300), '9'.repeat(40), '2026-02-30T00:00:00Z'],
  ...['2020-01-01T00:00:00Z', '2999-12-31T23:59:59.999Z', 'wait=0', 'respond-async', 'text/event-stream', 'image/png'],
]
const ODD_VALUES = [
  ...ODD_TEXTS,
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e21,
  2 ** 53,
  999_999_999_999,
  [],
  {},
  [[]],
  { a: {} },
]
const ODD_BODIES = [
  '',
  ' ',
  '{',
  '[]',
  'null',
  '"x"',
  '{"a":1,"a":2}',
  '[['.repeat(30),
  '{"\\u0000":1}',
  '\ufeff{}',
  '0x1',
]
const ODD_METHODS = ['PUT', 'DELETE', 'PATCH', 'POST', 'OPTIONS', 'HEAD']
const HEADERS = ['Accept', 'Prefer', 'If-Match', 'If-None-Match', 'Idempotency-Key', 'If-Min-Position', 'Last-Event-ID']
const MORE_HEADERS = [
  'API-Version',
  'X-Correlation-ID',
  'traceparent',
  'Content-Type',
  'Range',
  'Expect',
  'X-HTTP-Method-Override',
]
const ID = /\b(?:ord|inv|pay|op|sub|key|ent)_[0-9A-HJKMNP-TV-Z]{26}\b/
const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/
const DATE = /^\d{4}-\d\d-\d\d$/
const ID_PATTERN = /^\^([a-z]+)_\[/
const KNOWN_MAX = 400
const DEPTH_MAX = 8
/** Names that no member or parameter has. */
const UNKNOWN_NAMES = ['x', 'tenant_id', 'role', 'offset', '__proto__', 'amount[]']

/** `known` are texts that the service knows; `learn` adds the first id of a response. */
export const randomRequests = (document: Document, seed: number, known: readonly string[]) => {
  const random = randomOf(seed)
  const oneOf = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const chance = (share: number): boolean => random() < share
  const texts = [...known]
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      // Operations with authentication have more possible violations.
      const weight = (operation.security ?? []).length > 0 ? 4 : 1
      return Array.from({ length: weight }, () => ({ path, method: method.toUpperCase(), operation }))
    }),
  )

  const resolved = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {})

  const parametersOf = ({ parameters = [] }: Operation): Parameter[] =>
    parameters.flatMap(given =>
      '$ref' in given ? (document.components.parameters[given.$ref.split('/').at(-1) ?? ''] ?? []) : given,
    )

  const textOf = ({ pattern, format, minLength = 0 }: Schema): string => {
    const prefix = ID_PATTERN.exec(pattern ?? '')?.[1]
    if (prefix !== undefined)
      return oneOf(texts.filter(text => text.startsWith(`${prefix}_`)).concat(`${prefix}_${'0'.repeat(26)}`))
    if (format === 'date-time')
      return `20${10 + Math.floor(random() * 30)}-03-0${1 + Math.floor(random() * 9)}T10:00:00Z`
    if (format === 'uuid') return oneOf(texts.filter(text => UUID.test(text)).concat('0'.repeat(8)))
    if (format === 'date') return oneOf(texts.filter(text => DATE.test(text)).concat('2027-01-31'))
    if (pattern?.includes('\\d')) return String(Math.floor(random() * 120))
    return chance(0.5) ? oneOf(texts) : 'text'.padEnd(Math.max(minLength, Math.floor(random() * 30)), '.')
  }

  const numberOf = ({ minimum = 0, maximum = 1_000 }: Schema): number =>
    chance(0.8) ? minimum + Math.floor(random() * Math.min(200, maximum - minimum)) : maximum

  const objectOf = (schema: Schema, wrong: number, depth: number): object => {
    const { properties = {}, required = [], additionalProperties } = schema
    const members: Record<string, unknown> = {}
    for (const [name, inner] of Object.entries(properties))
      if (required.includes(name) ? !chance(wrong) : chance(0.4)) members[name] = valueOf(inner, wrong, depth + 1)
    if (typeof additionalProperties === 'object' && chance(0.5))
      members['a'] = valueOf(additionalProperties, wrong, depth + 1)
    if (chance(wrong)) members[oneOf(UNKNOWN_NAMES)] = oneOf(ODD_VALUES)
    return members
  }

  /** A value of the schema; at each place invalid with the probability `wrong`. */
  const valueOf = (given: Schema, wrong: number, depth = 0): unknown => {
    const schema = resolved(given)
    if (chance(wrong) || depth > DEPTH_MAX) return oneOf(ODD_VALUES)
    if (schema.const !== undefined) return schema.const
    // Any currency is valid, but only the first fits the invoices.
    if (schema.enum) return schema.enum.includes('USD') && chance(0.8) ? 'USD' : oneOf(schema.enum)
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return valueOf(oneOf(choices), wrong, depth + 1)
    if (schema.type === 'string') return textOf(schema)
    if (schema.type === 'integer' || schema.type === 'number') return numberOf(schema)
    if (schema.type === 'boolean') return chance(0.5)
    if (schema.type === 'null') return null
    if (schema.type === 'array')
      return Array.from({ length: (schema.minItems ?? 0) + Math.floor(random() * 3) }, () =>
        valueOf(schema.items ?? {}, wrong, depth + 1),
      )
    return objectOf(schema, wrong, depth)
  }

  const headerTextOf = (text: string): string => (/^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text))

  const headersOf = (operation: Operation, wrong: number): Record<string, string> => {
    const headers: Record<string, string> = {}
    for (const { in: place, name, required, schema } of parametersOf(operation))
      if (place === 'header' && (required ? !chance(wrong) : chance(0.15)))
        headers[name] = headerTextOf(String(/Match/.test(name) ? tag() : valueOf(schema, wrong)))
    if (chance(wrong))
      headers[oneOf([...HEADERS, ...MORE_HEADERS])] = headerTextOf(chance(0.5) ? oneOf(texts) : oneOf(ODD_TEXTS))
    // With Prefer, a list that waits for a future position would take the whole deadline.
    if (headers['If-Min-Position'] !== undefined) delete headers['Prefer']
    return headers
  }
  const tag = (): string => (chance(0.6) ? '*' : oneOf(texts.filter(text => text.startsWith('"'))))

  const pathOf = (path: string, operation: Operation, wrong: number): string => {
    const parameters = parametersOf(operation)
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const schema = parameters.find(parameter => parameter.in === 'path' && parameter.name === name)?.schema ?? {}
      // Values that only the examples name would hardly ever be generated.
      const value = schema.examples && !chance(wrong) ? oneOf(schema.examples) : valueOf(schema, wrong)
      return encodeURIComponent(String(value) || 'x')
    })
    const query = parameters
      .filter(parameter => parameter.in === 'query' && chance(0.25))
      .map(({ name, schema }) => `${name}=${encodeURIComponent(String(valueOf(schema, wrong)))}`)
    if (chance(wrong)) query.push(`${encodeURIComponent(oneOf(UNKNOWN_NAMES))}=${encodeURIComponent(oneOf(ODD_TEXTS))}`)
    return query.length > 0 ? `${filled}?${query.join('&')}` : filled
  }

  const bodyOf = ({ requestBody }: Operation, wrong: number) => {
    const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
    if (type === undefined || content === undefined) return {}
    const body = chance(wrong) ? oneOf(ODD_BODIES) : JSON.stringify(valueOf(content.schema, wrong))
    return { type: chance(wrong) ? 'text/plain' : type, body }
  }

  const next = (): RandomRequest => {
    const { path, method, operation } = oneOf(operations)
    // Half of the requests are valid; some of the others are invalid nearly everywhere.
    const wrong = chance(0.5) ? 0 : oneOf([0.05, 0.2, 0.6])
    const { type, body } = bodyOf(operation, wrong)
    const headers = { ...(type === undefined ? {} : { 'Content-Type': type }), ...headersOf(operation, wrong) }
    return {
      operation: operation.operationId,
      method: chance(wrong / 4) ? oneOf(ODD_METHODS) : method,
      path: pathOf(path, operation, wrong),
      headers,
      ...(body === undefined ? {} : { body }),
    }
  }

  const learn = (text: string): void => {
    const id = ID.exec(text)?.[0]
    if (id === undefined) return
    if (texts.length < KNOWN_MAX) texts.push(id)
    else if (!texts.includes(id)) texts[known.length + Math.floor(random() * (KNOWN_MAX - known.length))] = id
  }

  return { next, learn }
}
