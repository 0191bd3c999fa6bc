import { writeFileSync } from 'node:fs'
import { openApiOf } from '../../src/http/contract/openapi.ts'
import { NEWEST_VERSION, routes } from '../../src/http/index.ts'

/** `npm run client` writes the types of the client from the newest contract; the compiler alone needs them. */

const GENERATED = new URL('src/generated.ts', import.meta.url)

/** Endpoints for browsers, orchestrators and libraries of OAuth, which have no place in a client. */
const TAGS_LEFT_OUT: ReadonlySet<string> = new Set(['Contract', 'Health', 'Identity'])
/** The client sends its version itself; it keeps no copies, and reads no stream of events. */
const HEADERS_LEFT_OUT: ReadonlySet<string> = new Set(['API-Version', 'If-None-Match', 'Last-Event-ID'])
/** Headers of responses that the next request needs, and their names in an answer. */
const ANSWER_HEADERS = { ETag: 'etag', 'Ledger-Position': 'position' } as const

type Schema = {
  readonly $ref?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly type?: string | readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly description?: string
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>
type Parameter = {
  readonly in: string
  readonly name: string
  readonly required?: boolean
  readonly schema: Schema
  readonly description?: string
}
type Operation = {
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content; readonly headers?: object }>>
}
type Contract = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly parameters: Readonly<Record<string, Parameter>>
  }
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/

const nameIn = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1)

const commentOf = (text: string | undefined): string => (text === undefined ? '' : `/** ${text} */\n`)

type Member = { readonly name: string; readonly type: string; readonly required: boolean; readonly comment?: string }

const memberOf = ({ name, type, required, comment }: Member): string =>
  `${commentOf(comment)}readonly ${name}${required ? `: ${type}` : `?: ${type} | undefined`}\n`

const objectOf = (members: readonly Member[]): string => `{\n${members.map(memberOf).join('')}}`

const typeOfObject = ({ properties = {}, required = [], additionalProperties = true }: Schema): string => {
  const members = Object.entries(properties).map(([name, schema]) => ({
    name: JSON.stringify(name),
    type: typeOf(schema),
    required: required.includes(name),
    ...(schema.description !== undefined && { comment: schema.description }),
  }))
  if (members.length > 0) return objectOf(members)
  if (additionalProperties === false) return 'Readonly<Record<string, never>>'
  return `Readonly<Record<string, ${additionalProperties === true ? 'unknown' : typeOf(additionalProperties)}>>`
}

const SCALARS: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

const typeOf = (schema: Schema): string => {
  const { $ref, anyOf, oneOf = anyOf, type, items } = schema
  if ($ref !== undefined) return nameIn($ref)
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  if (oneOf) return oneOf.map(typeOf).join(' | ')
  if (Array.isArray(type)) return type.map(one => typeOf({ ...schema, type: one })).join(' | ')
  if (type === 'array') return `readonly (${items === undefined ? 'unknown' : typeOf(items)})[]`
  if (type === 'object') return typeOfObject(schema)
  return SCALARS[String(type)] ?? 'unknown'
}

/** JSON is parsed; a file is left to the caller, who reads it as a stream or whole. */
const dataOf = (content: Content = {}): string => {
  const json = Object.entries(content).find(([type]) => JSON_TYPE.test(type))
  if (json !== undefined) return typeOf(json[1].schema)
  return Object.keys(content).length === 0 ? 'undefined' : 'Response'
}

/** `Idempotency-Key` is the member idempotencyKey. */
const headerMember = (name: string): string =>
  name.toLowerCase().replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

const membersOf = (parameters: readonly Parameter[], nameOf: (name: string) => string): readonly Member[] =>
  parameters.map(({ name, schema, required = false, description }) => ({
    name: nameOf(name),
    type: typeOf(schema),
    required,
    ...(description !== undefined && { comment: description }),
  }))

const requestOf = ({ parameters = [], requestBody }: Operation, { components }: Contract): string => {
  const all = parameters.map(one => ('$ref' in one ? components.parameters[nameIn(one.$ref)] : one))
  const of = (place: string) => all.filter(parameter => parameter !== undefined).filter(one => one.in === place)
  const groups = (['path', 'query'] as const).map(place => ({ name: place, members: membersOf(of(place), String) }))
  const [body] = Object.values(requestBody?.content ?? {})
  return objectOf([
    ...groups
      .filter(({ members }) => members.length > 0)
      .map(({ name, members }) => ({ name, type: objectOf(members), required: members.some(one => one.required) })),
    ...(body ? [{ name: 'body', type: typeOf(body.schema), required: requestBody?.required === true }] : []),
    ...membersOf(
      of('header').filter(({ name }) => !HEADERS_LEFT_OUT.has(name)),
      headerMember,
    ),
  ])
}

const answersOf = ({ responses }: Operation): string =>
  objectOf(
    Object.entries(responses)
      .filter(([status]) => status.startsWith('2'))
      .map(([status, { content, headers = {} }]) => {
        const named = Object.entries(ANSWER_HEADERS).filter(([header]) => header in headers)
        const data = { name: 'data', type: dataOf(content), required: true }
        const type = objectOf([data, ...named.map(([, name]) => ({ name, type: 'string', required: true }))])
        return { name: status, type, required: true }
      }),
  )

export const generatedTypes = (): string => {
  const document = openApiOf(
    routes.filter(({ tag }) => !TAGS_LEFT_OUT.has(tag)),
    NEWEST_VERSION,
  )
  const contract = JSON.parse(JSON.stringify(document)) as Contract
  const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: JSON.stringify(`${method.toUpperCase()} ${path}`),
      type: `{\nreadonly request: ${requestOf(operation, contract)}\nreadonly answers: ${answersOf(operation)}\n}`,
      required: true,
      comment: `${operation.summary}. ${operation.description}`,
    })),
  )
  return [
    `/** The types of the contract. Written by npm run client. */\n\nexport type ApiVersion = '${NEWEST_VERSION}'\n`,
    ...Object.entries(contract.components.schemas).map(
      ([name, schema]) => `${commentOf(schema.description)}export type ${name} = ${typeOf(schema)}\n`,
    ),
    `export type Operations = ${objectOf(operations)}\n`,
  ].join('\n')
}

if (import.meta.main) writeFileSync(GENERATED, generatedTypes())
