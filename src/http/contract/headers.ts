import type { ZodOpenApiObject } from 'zod-openapi'
import { ENTITY_TAG, ENTITY_TAGS } from '../request/entityTags.ts'
import { CORRELATION_ID, TRACEPARENT } from '../request/correlation.ts'
import { KEY_HEADER } from '../request/idempotencyKey.ts'
import type { AnyRoute, ResponseSpec } from '../route.ts'
import { POSITION } from '../request/position.ts'
import { OLDEST_VERSION, type Version, VERSIONS } from '../versions/index.ts'

/** The headers of openapi.json: each is declared once as a component, and operations refer to it. */

type Components = NonNullable<ZodOpenApiObject['components']>
type Reference = { readonly $ref: string }
type Schema = Readonly<Record<string, string | number | boolean | readonly string[]>>

const text = (pattern?: RegExp): Schema => ({ type: 'string', ...(pattern ? { pattern: pattern.source } : {}) })

// --- Requests --------------------------------------------------------------------------------------------------------

type RequestHeader = {
  readonly description: string
  readonly schema: Schema
  readonly required?: true
  /** The name of the header, if the component has another name. */
  readonly name?: string
  readonly example?: string
}

const KEY = {
  name: 'Idempotency-Key',
  description:
    'A key that the caller chooses, one per intent, with or without quotes. The same key with the same request has one effect.',
  schema: text(KEY_HEADER),
  example: '5f0c6a52-9d1e-4a57-8f4e-0d6a1b2c3d4e',
}

const REQUEST_HEADERS = {
  'X-Correlation-ID': {
    description:
      'An id that the caller chooses, by which the request is found in logs and facts. A malformed one is replaced.',
    schema: text(CORRELATION_ID),
  },
  'API-Version': {
    description: 'The dated contract of the request and its response; by default the oldest one that is served.',
    schema: text(),
  },
  traceparent: { description: 'W3C Trace Context. A malformed one is ignored.', schema: text(TRACEPARENT) },
  'If-Match': {
    description: 'The ETag that the caller read. The command is executed only if the resource still has that version.',
    schema: text(ENTITY_TAGS),
    required: true,
  },
  'If-None-Match': {
    description: 'The ETag of the caller’s copy: 304 if the resource still has that version.',
    schema: text(ENTITY_TAGS),
  },
  'If-Min-Position': {
    description: 'A Ledger-Position: the list must be complete up to this position, else 503 projection_behind.',
    schema: text(POSITION),
  },
  Prefer: {
    description: 'RFC 7240. `wait=n`: wait up to n seconds. Other preferences are ignored.',
    schema: text(),
    example: 'wait=5',
  },
  'Prefer.respond-async': {
    name: 'Prefer',
    description:
      'RFC 7240. `respond-async`: respond 202 with an operation instead of the outcome; `wait=n`: wait up to n seconds for it. ' +
      'Other preferences are ignored.',
    schema: text(),
    example: 'respond-async',
  },
  'Idempotency-Key': KEY,
  'Idempotency-Key.required': { ...KEY, required: true },
  'Last-Event-ID': {
    description: 'The id of the last event that the caller received; the stream continues after it.',
    schema: text(),
  },
  Range: {
    description: 'One range of bytes (RFC 9110 §14). Other units, several ranges and malformed ones are ignored.',
    schema: text(),
    example: 'bytes=1048576-',
  },
  'If-Range': {
    description: 'The ETag of the caller’s part: of another version the whole file is returned.',
    schema: text(ENTITY_TAG),
  },
} as const satisfies Readonly<Record<string, RequestHeader>>

type RequestHeaderName = keyof typeof REQUEST_HEADERS

const requestHeaderNamesOf = (route: AnyRoute): readonly (RequestHeaderName | false | undefined)[] => [
  'X-Correlation-ID',
  'API-Version',
  'traceparent',
  route.ifMatch && 'If-Match',
  route.responses[304] && 'If-None-Match',
  route.isList && 'If-Min-Position',
  route.isList && 'Prefer',
  route.takesPreference && 'Prefer.respond-async',
  route.idempotencyKey === 'required' && 'Idempotency-Key.required',
  route.idempotencyKey === 'honoured' && 'Idempotency-Key',
  route.offers?.includes('text/event-stream') && 'Last-Event-ID',
  route.responses[206] && 'Range',
  route.responses[206] && 'If-Range',
]

/** The optional and the required headers of requests to this endpoint. */
export const requestHeadersOf = (route: AnyRoute): Reference[] =>
  requestHeaderNamesOf(route).flatMap(name => (name ? [{ $ref: `#/components/parameters/${name}` }] : []))

// --- Responses -------------------------------------------------------------------------------------------------------

type ResponseHeader = { readonly description: string; readonly schema?: Schema }

const RESPONSE_HEADERS = {
  'X-Correlation-ID': { description: 'The id of the request or else a new one; it is in the facts and in the logs.' },
  'API-Version': { description: 'The dated contract of the response.' },
  'Cache-Control': {
    description: 'Resources may be cached if they are revalidated before each use; other responses may not be cached.',
  },
  'X-Content-Type-Options': { description: 'nosniff', schema: { type: 'string', enum: ['nosniff'] } },
  ETag: { description: 'Strong entity tag of this version of the resource.', schema: text(ENTITY_TAG) },
  Location: { description: 'The address of the resource.' },
  Deprecation: {
    description: 'Present when the version of the contract is deprecated: the date from which it is (RFC 9745).',
  },
  Sunset: {
    description: 'Present when the version is deprecated: the date after which it may not be served (RFC 8594).',
  },
  Link: {
    description:
      'The address of the next page (rel="next"); when the version is deprecated, also the address of its migration guide ' +
      '(rel="deprecation" and rel="successor-version").',
  },
  'Ledger-Position': { description: 'The position of the log after the command.', schema: text(POSITION) },
  'Idempotent-Replayed': {
    description: 'true for the recorded response to an earlier request with the same key.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Preference-Applied': { description: 'The preference that was applied (RFC 7240).' },
  'Content-Disposition': { description: 'The name of the file.' },
  'Content-Length': { description: 'The number of bytes of the response.', schema: { type: 'integer', minimum: 0 } },
  'Content-Range': { description: 'The first and the last byte of the response, and the number of bytes of the file.' },
  'Accept-Ranges': { description: 'The header Range is supported.', schema: { type: 'string', enum: ['bytes'] } },
  'Repr-Digest': { description: 'SHA-256 of the file (RFC 9530).' },
  'Retry-After': {
    description: 'The number of seconds to wait before the next attempt.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Policy': {
    description: 'The limits that apply to the request: name, number of requests (q), seconds (w).',
  },
  RateLimit: { description: 'The state of these limits: remaining requests (r), seconds until the window ends (t).' },
  'Accept-Post': { description: 'The media type that the endpoint accepts.' },
  'Accept-Patch': { description: 'The media type that the endpoint accepts.' },
  'WWW-Authenticate': {
    description:
      'Bearer, where a token is had from (resource_metadata), and the error if a credential was sent (RFC 6750).',
  },
} as const satisfies Readonly<Record<string, ResponseHeader>>

type ResponseHeaderName = keyof typeof RESPONSE_HEADERS

const ON_EVERY_RESPONSE = ['X-Correlation-ID', 'API-Version', 'Cache-Control', 'X-Content-Type-Options'] as const
/** The further headers of every response to an authenticated caller. */
const RATE_LIMIT_HEADERS = ['RateLimit-Policy', 'RateLimit'] as const

/** The headers that announce the end of a version, on every response of a deprecated one. */
const DEPRECATION_HEADERS = ['Deprecation', 'Sunset', 'Link'] as const

/** A required and an optional header are two components, since a reference cannot add `required`. */
const OPTIONAL_SUFFIX = '.optional'

const required = (names: readonly ResponseHeaderName[]): [string, Reference][] =>
  names.map(name => [name, { $ref: `#/components/headers/${name}` }])
const optional = (names: readonly ResponseHeaderName[]): [string, Reference][] =>
  names.map(name => [name, { $ref: `#/components/headers/${name}${OPTIONAL_SUFFIX}` }])

/** The headers of a successful response: those of every response, and those that the endpoint declares. */
export const successHeadersOf = ({ headers = [] }: ResponseSpec, { scope }: AnyRoute): Record<string, Reference> =>
  Object.fromEntries([
    ...required(scope === 'none' ? ON_EVERY_RESPONSE : [...ON_EVERY_RESPONSE, ...RATE_LIMIT_HEADERS]),
    ...optional([...headers, ...DEPRECATION_HEADERS]),
  ])

const OF_STATUS: Readonly<Record<number, readonly ResponseHeaderName[]>> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  409: ['Location', 'Idempotent-Replayed'],
  412: ['ETag'],
  415: ['Accept-Post', 'Accept-Patch'],
  416: ['Content-Range', 'Accept-Ranges'],
}

export const failureHeadersOf = (status: number): Record<string, Reference> =>
  Object.fromEntries([
    ...required(ON_EVERY_RESPONSE),
    ...optional([...RATE_LIMIT_HEADERS, 'Retry-After', ...(OF_STATUS[status] ?? []), ...DEPRECATION_HEADERS]),
  ])

// --- Components ------------------------------------------------------------------------------------------------------

const parametersOf = (all: Readonly<Record<string, RequestHeader>>): NonNullable<Components['parameters']> =>
  Object.fromEntries(
    Object.entries(all).map(([id, { name = id, required: must = false, ...rest }]) => [
      id,
      { in: 'header', name, required: must, ...rest },
    ]),
  )

const headersOf = (all: Readonly<Record<string, ResponseHeader>>): NonNullable<Components['headers']> =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, { description, schema = text() }]) => [
      [name, { description, required: true, schema }],
      [`${name}${OPTIONAL_SUFFIX}`, { description, schema }],
    ]),
  )

/** API-Version of requests. One without it is of the oldest version, so the documents of the others require it. */
const choosing = (version: Version): RequestHeader => ({
  ...REQUEST_HEADERS['API-Version'],
  schema: { type: 'string', enum: [version] },
  ...(version === OLDEST_VERSION ? {} : { required: true }),
})

/** API-Version of responses. A request that was not understood is answered by the oldest version. */
const answering = (version: Version): ResponseHeader => ({
  ...RESPONSE_HEADERS['API-Version'],
  schema: { type: 'string', enum: VERSIONS.slice(0, VERSIONS.indexOf(version) + 1) },
})

export const headerComponentsOf = (version: Version) => ({
  parameters: parametersOf({ ...REQUEST_HEADERS, 'API-Version': choosing(version) }),
  headers: headersOf({ ...RESPONSE_HEADERS, 'API-Version': answering(version) }),
})
