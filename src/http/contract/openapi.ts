import { z } from 'zod'
import {
  createDocument,
  type CreateDocumentOptions,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
} from 'zod-openapi'
import { headerComponentsOf, requestHeadersOf, successHeadersOf } from './headers.ts'
import { contractTerms, SCOPE_DESCRIPTIONS, TAGS } from './contractTerms.ts'
import { createExamples } from './examples.ts'
import { describeSchemas } from './memberDescriptions.ts'
import { describeParameters } from './parameterDescriptions.ts'
import { descriptionOf, securityOf, termsOf } from './operationTerms.ts'
import { failureOf } from './problemResponses.ts'
import { statusOf } from '../problems/problemCatalogue.ts'
import { type AnyRoute, type ResponseSpec, route } from '../route.ts'
import { errorsOf } from './errorCodesOfRoute.ts'
import type { Version } from '../versions/index.ts'
import { inVersion } from '../translation/translation.ts'

/** openapi.json, derived from the same route declarations as the router. */

/** The forms that a JSON response can have as well, by their type. */
const TEXTS = {
  'text/event-stream': z.string().meta({
    description:
      'Server-sent events: id is an opaque position for Last-Event-ID, event the type of the fact, data the CloudEvent as JSON. A stream that ends ' +
      'because the service restarts gives the time after which to open it again (retry).',
  }),
  'text/html': z.string().meta({ description: 'A page for browsers.' }),
}

const responseOf = (spec: ResponseSpec, endpoint: AnyRoute) => {
  const { description, schema, contentType = 'application/json' } = spec
  const others = Object.fromEntries(
    Object.entries(TEXTS)
      .filter(([type]) => endpoint.offers?.includes(type) && contentType === 'application/json')
      .map(([type, text]) => [type, { schema: text }]),
  )
  return {
    description,
    headers: successHeadersOf(spec, endpoint),
    ...(schema
      ? { content: { ...Object.fromEntries([contentType].flat().map(type => [type, { schema }])), ...others } }
      : {}),
  }
}

const responsesOf = (endpoint: AnyRoute): ZodOpenApiOperationObject['responses'] => {
  const byStatus = Map.groupBy(errorsOf(endpoint), statusOf)
  return Object.fromEntries([
    ...Object.entries(endpoint.responses).map(([status, spec]) => [status, responseOf(spec, endpoint)]),
    ...[...byStatus]
      .filter(([status]) => !(status in endpoint.responses))
      .map(([status, errors]) => [String(status), failureOf(status, errors)]),
  ])
}

const operationOf = (endpoint: AnyRoute): ZodOpenApiOperationObject => ({
  operationId: endpoint.operationId,
  summary: endpoint.summary,
  description: descriptionOf(endpoint),
  tags: [endpoint.tag],
  security: securityOf(endpoint),
  ...termsOf(endpoint),
  parameters: requestHeadersOf(endpoint),
  requestParams: {
    ...(endpoint.params ? { path: endpoint.params } : {}),
    ...(endpoint.query ? { query: endpoint.query } : {}),
  },
  ...(endpoint.body
    ? {
        requestBody: {
          required: !endpoint.body.safeParse(undefined).success,
          content: { [endpoint.bodyType ?? 'application/json']: { schema: endpoint.body } },
        },
      }
    : {}),
  responses: responsesOf(endpoint),
})

const tokens = { tokenUrl: '/oauth/token', scopes: SCOPE_DESCRIPTIONS } as const

const oauth = {
  type: 'oauth2',
  flows: {
    authorizationCode: { authorizationUrl: '/oauth/auth', refreshUrl: '/oauth/token', ...tokens },
    clientCredentials: tokens,
  },
} as const

const apiKey = { type: 'apiKey', in: 'header', name: 'X-API-Key' } as const

/** The document without shared headers that none of its operations uses. */
const withoutUnused = <D extends { components?: object }>(document: D, version: Version): D => {
  const text = JSON.stringify(document)
  const used = (kind: string, all: object) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)))
  const { parameters, headers } = headerComponentsOf(version)
  const shared = { parameters: used('parameters', parameters), headers: used('headers', headers) }
  return { ...document, components: { ...document.components, ...shared } }
}

/** Responses permit additional members, so a later one does not break a consumer. The tests permit none. */
const open: CreateDocumentOptions['override'] = ({ jsonSchema, io }) => {
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
}

type Document = ReturnType<typeof createDocument>

const operationsIn = ({ paths = {} }: Document) =>
  Object.values(paths).flatMap(item => [item.get, item.post, item.patch, item.delete])

type Contents = Readonly<Record<string, { schema?: object; example?: unknown }>>

/** Adds an example to each JSON body of a request or a successful response; problems have theirs already. */
const addExamples = (document: Document): void => {
  const exampleOf = createExamples(document)
  const bodies = operationsIn(document).flatMap(operation => [
    operation?.requestBody,
    ...Object.values(operation?.responses ?? {}),
  ])
  for (const body of bodies)
    for (const [type, content] of Object.entries<Contents[string]>((body as { content?: Contents })?.content ?? {}))
      if (type.endsWith('json')) content.example = exampleOf(content.schema)
}

/** The OpenAPI 3.1 document of a version, from the routes in the newest shape and the translators. */
export const openApiOf = (newestRoutes: readonly AnyRoute[], version: Version) => {
  const paths: NonNullable<ZodOpenApiObject['paths']> = {}
  for (const endpoint of inVersion(newestRoutes, version))
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operationOf(endpoint) }
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Payment ledger',
        version,
        description: 'Orders, invoices with approval, payments made exactly once per intent, published facts.',
        contact: { name: 'The owner of the contract, named in CONTRIBUTING.md' },
        license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      },
      servers: [{ url: '/', description: 'The service that serves this document.' }],
      tags: [...TAGS],
      ...contractTerms,
      components: { securitySchemes: { oauth, apiKey } },
      paths,
    },
    { override: open },
  )
  const whole = withoutUnused(document, version)
  describeParameters(operationsIn(whole))
  describeSchemas(whole)
  addExamples(whole)
  return whole
}

/** GET /openapi.json, for these routes and itself: the document of the version that the request chooses. */
export const openApiRoute = (routes: readonly AnyRoute[]): AnyRoute => {
  const documents = new Map<Version, string>()
  const documentOf = (version: Version): string => {
    const document = documents.get(version) ?? JSON.stringify(openApiOf([...routes, endpoint], version))
    documents.set(version, document)
    return document
  }
  const endpoint: AnyRoute = route({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'read_contract',
    summary: 'Read this contract (OpenAPI)',
    tag: 'Contract',
    scope: 'none',
    responses: { 200: { description: 'The OpenAPI 3.1 document.', schema: z.record(z.string(), z.unknown()) } },
    handler: async ({ apiVersion }) => ({
      status: 200,
      body: documentOf(apiVersion),
      headers: { 'Cache-Control': 'public, max-age=300', Vary: 'API-Version' },
    }),
  })
  return endpoint
}
