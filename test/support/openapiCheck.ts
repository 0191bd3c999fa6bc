import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { openApiOf } from '../../src/http/contract/openapi.ts'
import { OLDEST_VERSION, routes, type Version, VERSIONS } from '../../src/http/index.ts'
import { checkFact, type Fact } from './factSchemaCheck.ts'

/** Checks every response of a test against openapi.json: status, headers and body. */

const addFormats = addFormatsModule.default
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats(ajv)

const isObject = (node: unknown): node is Readonly<Record<string, unknown>> =>
  typeof node === 'object' && node !== null && !Array.isArray(node)

/** The schemas without undeclared members, which the published ones permit so that members can be added. */
const closed = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(closed)
  if (!isObject(node)) return node
  const inner = Object.fromEntries(
    Object.entries(node).map(([name, value]) => [name, name.startsWith('example') ? value : closed(value)]),
  )
  const isOpen = isObject(node['properties']) && node['type'] === 'object' && !('additionalProperties' in node)
  return isOpen ? { ...inner, additionalProperties: false } : inner
}

const documents = new Map<string, ReturnType<typeof openApiOf>>(
  VERSIONS.map(version => [version, openApiOf(routes, version)]),
)
for (const [version, document] of documents)
  ajv.addSchema({ ...(closed(document) as object), $id: `contract-${version}` })

/** The document of a version, by default that of requests without API-Version. */
const documentOf = (version: string = OLDEST_VERSION) => {
  const document = documents.get(version)
  if (document === undefined) throw new Error(`There is no version ${version}.`)
  return document
}

export type Seen = {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly text: string
}

/** The component of a reference; other values are returned unchanged. */
export const resolved = <T extends object>(given: T | { readonly $ref: string }, version?: Version): T => {
  if (!('$ref' in given)) return given
  const [, , kind = '', name = ''] = given.$ref.split('/')
  const actual = (documentOf(version).components as Readonly<Record<string, Readonly<Record<string, T>>>>)[kind]?.[name]
  if (actual === undefined) throw new Error(`The document has no ${given.$ref}.`)
  return actual
}

/** The (operation, status, code) triples of this run, for the coverage of the contract. */
export const seen = new Set<string>()

const matcherOf = (template: string): RegExp =>
  new RegExp(`^${template.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/:]+')}$`)
/** The paths are the same in all versions. */
const templates = Object.keys(documentOf().paths ?? {}).map(template => ({ template, matches: matcherOf(template) }))

// An action's colon ends an id; other parameters (keys, codes) may contain one.
const templateOf = (path: string) =>
  templates.find(({ matches }) => matches.test(path)) ??
  templates.find(({ matches }) => matches.test(path.replaceAll(/:/g, '%3A')))

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

const pathOf = (path: string): string => (path.split('?', 1)[0] ?? '').replaceAll(/%3a/gi, ':')

const EVERY = ['x-correlation-id', 'api-version', 'cache-control', 'x-content-type-options']
const problemSchema = { $ref: `contract-${OLDEST_VERSION}#/components/schemas/Problem` }

/** Checks the promises that hold for every response. */
export const checkEvery = ({ method, path, status, headers, body }: Seen): void => {
  const subject = `${method} ${path} → ${status}`
  for (const name of EVERY) if (!headers.get(name)) throw new Error(`${subject} lacks the header ${name}.`)
  for (const name of ['x-powered-by', 'server'])
    if (headers.has(name)) throw new Error(`${subject} discloses its software: ${headers.get(name)}.`)
  const isProblem = headers.get('content-type') === 'application/problem+json'
  if (isProblem !== status >= 400 && pathOf(path) !== '/readyz')
    throw new Error(`${subject}: not a problem document, or one without a failure.`)
  if (isProblem && method !== 'HEAD') checkProblem(subject, status, headers, body)
}

const checkProblem = (subject: string, status: number, headers: Headers, body: unknown): void => {
  if (!ajv.validate(problemSchema, body)) throw new Error(`${subject}: ${ajv.errorsText()} in ${JSON.stringify(body)}`)
  const problem = body as { status: number; type: string; code: string; retry: { after_seconds?: number } }
  if (problem.status !== status) throw new Error(`${subject}: the document says ${problem.status}.`)
  if (problem.type !== `/problems/${problem.code}`)
    throw new Error(`${subject}: ${problem.type} is not ${problem.code}.`)
  const after = problem.retry.after_seconds?.toString() ?? null
  if (headers.get('retry-after') !== after) throw new Error(`${subject}: Retry-After is not ${after}.`)
}

const codeOf = ({ body }: Seen): string => (body as { code?: string } | undefined)?.code ?? ''

/** Framing errors are reported before the path is parsed (contract: order of checks). */
const BEFORE_ROUTE = new Set(['bad_request_framing', 'uri_too_long', 'headers_too_large', 'multiple_credentials'])
const isBeforeRoute = (answer: Seen): boolean =>
  BEFORE_ROUTE.has(codeOf(answer)) || (answer.method === 'HEAD' && [400, 414, 431].includes(answer.status))

type Header = { readonly required?: boolean; readonly schema?: { readonly type?: string } }
type Response = {
  readonly 'x-error-codes'?: readonly string[]
  readonly headers?: Readonly<Record<string, Header | { readonly $ref: string }>>
  readonly content?: Readonly<Record<string, object>>
}

const checkHeader = (subject: string, name: string, { required, schema = {} }: Header, { headers }: Seen): void => {
  const text = headers.get(name)
  if (text === null && required) throw new Error(`${subject} lacks the header ${name}.`)
  if (text === null) return
  const value = schema.type === 'integer' ? Number(text) : text
  if (!ajv.validate(schema, value)) throw new Error(`${subject}: the header ${name}: ${text}: ${ajv.errorsText()}.`)
}

/** Throws if the contract does not have this response. An unknown path or method must give 404 or 405. */
export const checkResponse = async (answer: Seen): Promise<void> => {
  checkEvery(answer)
  const actual = templateOf(pathOf(answer.path))
  const isHead = answer.method === 'HEAD'
  // RFC 9110 §9.3.2: HEAD is GET without the content.
  const method = (isHead ? 'get' : answer.method.toLowerCase()) as 'get' | 'post' | 'patch' | 'delete'
  const version = answer.headers.get('api-version') as Version
  const operation = actual && documentOf(version).paths?.[actual.template]?.[method]
  if (!actual || !operation) {
    const fits = answer.status === 404 || answer.status === 405 || answer.status >= 500 || isBeforeRoute(answer)
    if (!fits) throw new Error(`${answer.method} ${answer.path} answered ${answer.status} and is not in the contract.`)
    return
  }
  // Ids contain no colon, so a path with one may match a template without being a route.
  if (codeOf(answer) === 'route_not_found' && pathOf(answer.path).includes(':')) return
  const subject = `${answer.method} ${actual.template} → ${answer.status}`
  const given = operation.responses?.[`${answer.status}` as '200']
  if (given === undefined) throw new Error(`${subject} is not in the contract: ${JSON.stringify(answer.body)}`)
  const response: Response = resolved(given, version)
  const { code } = (answer.body ?? {}) as { code?: string }
  const declared = response['x-error-codes']
  if (declared && !isHead && !declared.includes(code ?? ''))
    throw new Error(`${subject} does not declare the code ${code}.`)
  seen.add(`${operation.operationId} ${answer.status} ${declared ? code : ''}`.trim())
  for (const [name, header] of Object.entries(response.headers ?? {}))
    checkHeader(subject, name, resolved(header, version), answer)
  const { content } = response
  const types = Object.keys(content ?? {})
  const contentType = answer.headers.get('content-type')?.split(';')[0]
  if (types.length === 0 || contentType === 'text/event-stream') return
  const type = types.find(each => each === contentType)
  if (type === undefined)
    throw new Error(`${subject} has the content type ${contentType} in place of ${types.join(' or ')}.`)
  if (isHead) return
  const place =
    '$ref' in given ? given.$ref.slice(2) : `paths/${escaped(actual.template)}/${method}/responses/${answer.status}`
  const reference = `contract-${version}#/${place}/content/${escaped(type)}/schema`
  const validate = ajv.getSchema(encodeURI(reference)) ?? ajv.getSchema(reference)
  if (!validate) throw new Error(`No schema at ${reference}.`)
  if (!validate(type.endsWith('json') ? answer.body : answer.text))
    throw new Error(`${subject}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(answer.body)}`)
  if (operation.operationId === 'list_events' && answer.status === 200)
    for (const fact of (answer.body as { items: Fact[] }).items) checkFact(fact, 'page')
}
