import { readFileSync, writeFileSync } from 'node:fs'
import { generateApi } from 'swagger-typescript-api'
import { openApiOf } from '../../src/http/contract/openapi.ts'
import { NEWEST_VERSION, routes } from '../../src/http/index.ts'

/**
 * `npm run client` writes the generated files of the client, from the contract of the newest version. The generator is
 * swagger-typescript-api, the only maintained one that brings its TypeScript compiler: the others need a compiler API
 * that TypeScript 7 does not have.
 */

const SOURCES = new URL('src/', import.meta.url)
/** The package has no dependencies, so it has a copy. */
const REQUESTED_PAUSE = new URL('../../src/lib/requestedPause.ts', import.meta.url)

/** The argument of a path parameter: the library names `event_id` eventId. */
const argumentOf = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/**
 * The generator parses the colon of an action as the start of a parameter, as Express does; `/invoices/{id}:approve`
 * has one parameter. It encodes none either, and a key may be `order#42`.
 */
const withEncodedParameters = <P extends { readonly originalRoute: string; readonly pathParams: readonly object[] }>(
  path: P,
) => ({
  ...path,
  route: path.originalRoute.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => `\${encodeURIComponent(${argumentOf(name)})}`,
  ),
  pathParams: path.pathParams.filter(param => '$match' in param && String(param.$match).startsWith('{')),
})

/** Endpoints for browsers, orchestrators and libraries of OAuth, which have no place in a client. */
const TAGS_LEFT_OUT: ReadonlySet<string> = new Set(['Contract', 'Health', 'Identity'])
const resourceRoutes = routes.filter(({ tag }) => !TAGS_LEFT_OUT.has(tag))

type Content = Readonly<Record<string, unknown>>
type Responses = Readonly<Record<string, { readonly content?: Content }>>

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/
const FILE: Content = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }

/**
 * The generator reads every body as JSON whose schema it finds. A file is left to the caller, who reads it as a stream
 * or whole.
 */
const withFiles = (responses: Responses): Responses =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const types = Object.keys(response.content ?? {})
      const isFile = types.length > 0 && !types.some(type => JSON_TYPE.test(type))
      return [status, isFile ? { ...response, content: FILE } : response]
    }),
  )

type Guidance = { readonly retry: object }
const tableOf = (problems: Readonly<Record<string, Guidance>>): string =>
  Object.entries(problems)
    .map(([code, { retry }]) => `  ${code}: ${JSON.stringify(retry)},\n`)
    .join('')

/** The file names and contents, from the contract of this code. */
export const generatedFiles = async (): Promise<Readonly<Record<string, string>>> => {
  const document = openApiOf(resourceRoutes, NEWEST_VERSION)
  const { files } = await generateApi({
    spec: JSON.parse(JSON.stringify(document), (key, value) => (key === 'responses' ? withFiles(value) : value)),
    output: false,
    silent: true,
    httpClientType: 'fetch',
    generateUnionEnums: true,
    generateRouteTypes: true,
    hooks: { onBuildRoutePath: withEncodedParameters },
  })
  const problems: Readonly<Record<string, Guidance>> = document['x-problems']
  const contract = [
    '/** The version of the contract and its retry table. Written by npm run client. */',
    `export const API_VERSION = '${NEWEST_VERSION}'`,
    `export const RETRY_TABLE = {\n${tableOf(problems)}} as const`,
  ]
  return {
    'generated.ts': files[0]?.fileContent ?? '',
    'contract.ts': `${contract.join('\n\n')}\n`,
    'requestedPause.ts': readFileSync(REQUESTED_PAUSE, 'utf8'),
  }
}

/** The generated files that are not as the contract is now. */
export const outdatedFiles = async (): Promise<readonly string[]> =>
  Object.entries(await generatedFiles())
    .filter(([name, content]) => readFileSync(new URL(name, SOURCES), 'utf8') !== content)
    .map(([name]) => name)

if (import.meta.main)
  for (const [name, content] of Object.entries(await generatedFiles())) writeFileSync(new URL(name, SOURCES), content)
