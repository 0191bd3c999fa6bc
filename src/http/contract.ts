import { z } from 'zod'
import { createDocument, type ZodOpenApiObject, type ZodOpenApiOperationObject } from 'zod-openapi'
import { SCOPES } from '../identity/principal.ts'
import { type ErrorCode, PROBLEMS, retryOf, statusOf } from './problem.ts'
import { type AnyRoute, errorsOf, isForApiKeys, type ResponseSpec, route } from './route.ts'
import { VERSIONS } from './versions/index.ts'

/** openapi.json, made from the same declarations that the router is made from. */

const codes = Object.keys(PROBLEMS) as [ErrorCode, ...ErrorCode[]]

const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    code: z.enum(codes),
    category: z.enum([...new Set(codes.map(code => PROBLEMS[code][1]))]),
    correlation_id: z.string(),
    retry: z.object({
      retryable: z.boolean(),
      strategy: z.enum([...new Set(codes.map(code => PROBLEMS[code][2]))]),
      after_seconds: z.int().optional(),
    }),
    errors: z.array(z.object({ pointer: z.string(), code: z.string(), detail: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details, with a stable code and retry guidance.' })

const HEADERS: Readonly<Record<string, string>> = {
  'X-Correlation-ID': 'Yours if you sent one, else a new one. It is in the facts and in the logs.',
  'API-Version': 'The contract that answered.',
  'Cache-Control': 'Resources may be kept if they are asked for again before use; nothing else is kept.',
  'X-Content-Type-Options': 'nosniff',
  ETag: 'Strong entity tag of this version of the resource.',
  Location: 'Where the resource is.',
  Link: 'The next page (rel="next").',
  'Ledger-Position': 'The position of the log after this command.',
  'Idempotent-Replayed': 'true when this is the recorded answer of an earlier request with the same key.',
  'Preference-Applied': 'The preference that was followed (RFC 7240).',
  'Content-Disposition': 'The name of the file.',
  'Content-Length': 'The bytes of this answer.',
  'Content-Range': 'The first and the last byte of this answer, and how many the file has.',
  'Accept-Ranges': 'bytes: Range is taken.',
  'Repr-Digest': 'SHA-256 of the file (RFC 9530).',
  'Retry-After': 'Seconds to wait before the next try.',
  'RateLimit-Policy': 'The limits that the request counts for: name, requests (q), seconds (w).',
  RateLimit: 'How they stand: what is left (r), seconds until the window ends (t).',
  'WWW-Authenticate':
    'Bearer, where a token is had from (resource_metadata), and the error if a credential was sent (RFC 6750).',
}
const EVERY = ['X-Correlation-ID', 'API-Version', 'Cache-Control', 'X-Content-Type-Options']

const headersOf = (names: readonly string[], required: boolean) =>
  z.object(
    Object.fromEntries(
      names.map(name => {
        const header = z.string().meta({ description: HEADERS[name] ?? '' })
        return [name, required ? header : header.optional()]
      }),
    ),
  )

const LIMITED = ['RateLimit-Policy', 'RateLimit']

const responseOf = (
  { description, schema, headers = [], contentType = 'application/json' }: ResponseSpec,
  { scope }: AnyRoute,
) => ({
  description,
  headers: headersOf(scope === 'none' ? EVERY : [...EVERY, ...LIMITED], true).extend(headersOf(headers, false).shape),
  ...(schema ? { content: Object.fromEntries([contentType].flat().map(type => [type, { schema }])) } : {}),
})

const failureOf = (status: number, errors: readonly ErrorCode[]) => ({
  description: errors.map(code => `${code}: ${PROBLEMS[code][3]}`).join(' '),
  headers: headersOf(EVERY, true).extend(
    headersOf([...LIMITED, 'Retry-After', 'WWW-Authenticate', 'ETag', 'Location', 'Idempotent-Replayed'], false).shape,
  ),
  content: { 'application/problem+json': { schema: problemSchema } },
  'x-error-codes': errors,
  'x-retry': Object.fromEntries(errors.map(code => [code, retryOf(code)])),
  'x-status': status,
})

const responsesOf = (declared: AnyRoute): ZodOpenApiOperationObject['responses'] => {
  const byStatus = Map.groupBy(errorsOf(declared), statusOf)
  return Object.fromEntries([
    ...Object.entries(declared.responses).map(([status, spec]) => [status, responseOf(spec, declared)]),
    ...[...byStatus]
      .filter(([status]) => !(status in declared.responses))
      .map(([status, errors]) => [String(status), failureOf(status, errors)]),
  ])
}

const requestHeadersOf = (declared: AnyRoute) =>
  z.object({
    'X-Correlation-ID': z.string().optional(),
    'API-Version': z.enum(VERSIONS).optional(),
    ...(declared.ifMatch ? { 'If-Match': z.string() } : {}),
    ...(declared.responses[304] ? { 'If-None-Match': z.string().optional() } : {}),
    ...(declared.isList ? { 'If-Min-Position': z.string().optional() } : {}),
    ...(declared.isList || declared.takesPreference ? { Prefer: z.string().optional() } : {}),
    ...(declared.idempotencyKey === 'required' ? { 'Idempotency-Key': z.string() } : {}),
    ...(declared.idempotencyKey === 'honoured' ? { 'Idempotency-Key': z.string().optional() } : {}),
  })

/** Any one of them suffices. */
const scopesOf = ({ scope, orScopes = [] }: AnyRoute) => (scope === 'none' ? [] : [scope, ...orScopes])

const operationOf = (declared: AnyRoute): ZodOpenApiOperationObject => ({
  operationId: declared.operationId,
  summary: declared.summary,
  ...(declared.description ? { description: declared.description } : {}),
  tags: [declared.tag],
  security: [
    ...scopesOf(declared).map(scope => ({ oauth: [scope] })),
    ...(isForApiKeys(declared) ? [{ apiKey: [] }] : []),
  ],
  requestParams: {
    header: requestHeadersOf(declared),
    ...(declared.params ? { path: declared.params } : {}),
    ...(declared.query ? { query: declared.query } : {}),
  },
  ...(declared.body
    ? {
        requestBody: {
          required: !declared.body.safeParse(undefined).success,
          content: { [declared.bodyType ?? 'application/json']: { schema: declared.body } },
        },
      }
    : {}),
  responses: responsesOf(declared),
})

const tokens = { tokenUrl: '/oauth/token', scopes: Object.fromEntries(SCOPES.map(scope => [scope, scope])) } as const

const oauth = {
  type: 'oauth2',
  flows: {
    authorizationCode: { authorizationUrl: '/oauth/auth', refreshUrl: '/oauth/token', ...tokens },
    clientCredentials: tokens,
  },
} as const

const apiKey = { type: 'apiKey', in: 'header', name: 'X-API-Key' } as const

/** The OpenAPI 3.1 document of these routes. */
export const openApiOf = (routes: readonly AnyRoute[]) => {
  const paths: NonNullable<ZodOpenApiObject['paths']> = {}
  for (const declared of routes)
    paths[declared.path] = { ...paths[declared.path], [declared.method.toLowerCase()]: operationOf(declared) }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Payment ledger',
      version: VERSIONS.at(-1) ?? '',
      description: 'Orders, invoices with approval, payments made exactly once per intent, published facts.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    components: { securitySchemes: { oauth, apiKey } },
    paths,
  })
}

/** GET /openapi.json, for these routes and itself. */
export const contractRoute = (routes: readonly AnyRoute[]): AnyRoute => {
  let document: string | undefined
  const declared: AnyRoute = route({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'read_contract',
    summary: 'This contract',
    tag: 'Contract',
    scope: 'none',
    rateClass: 'default',
    responses: { 200: { description: 'The OpenAPI 3.1 document.', schema: z.record(z.string(), z.json()) } },
    errors: [],
    handle: async () => {
      document ??= JSON.stringify(openApiOf([...routes, declared]))
      return { status: 200, body: document, headers: { 'Cache-Control': 'public, max-age=300' } }
    },
  })
  return declared
}
