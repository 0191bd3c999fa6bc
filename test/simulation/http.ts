import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import type { Request } from 'express'
import { OLDEST_VERSION, routes } from '../../src/http/index.ts'
import type { RequestedVersion } from '../../src/http/versions/requestedVersion.ts'
import { inVersion } from '../../src/http/translation/translation.ts'
import { Problem, type ProblemDocument } from '../../src/http/problems/problemCatalogue.ts'
import { documentOf } from '../../src/http/problems/problemDocument.ts'
import type { AnyRoute, Streamed } from '../../src/http/route.ts'
import { createRequestTurn } from '../../src/http/admission/requestTurn.ts'
import { strangerAccount } from '../../src/fairness/account.ts'
import { type Principal, SCOPES } from '../../src/identity/principal.ts'
import type { Instance } from './instance.ts'

/** Requests of clients, given to the request pipeline of an instance without a socket. */

export type Sent = {
  readonly operation: string
  readonly caller: Caller
  readonly id?: string | undefined
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object | undefined
  readonly correlationId: string
}

export type Caller = { readonly tenant: string; readonly subject: string }

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The JSON document, parsed from `text`. */
  readonly body: Readonly<Record<string, unknown>> | undefined
  /** The body as it is sent. */
  readonly text: string
  readonly code: ProblemDocument['code'] | undefined
  /** A body that is sent in pieces. */
  readonly stream?: Streamed
  /** Ends the exchange: the client has read the answer or has disconnected. */
  readonly close: () => void
  /** The error that caused a status 500. */
  readonly fault?: unknown
}

export const principalOf = ({ tenant, subject }: Caller): Principal => ({
  tenant,
  subject,
  client: subject,
  scopes: new Set(SCOPES),
  kind: 'workload',
})

/** The clients send no API-Version. */
const requestedVersion: RequestedVersion = { version: OLDEST_VERSION }
const byOperation: ReadonlyMap<string, AnyRoute> = new Map(
  inVersion(routes, OLDEST_VERSION).map(route => [route.operationId, route]),
)

export const routeOf = (operation: string): AnyRoute => {
  const match = byOperation.get(operation)
  if (match === undefined) throw new Error(`No operation is called ${operation}.`)
  return match
}

const requestOf = ({ operation, id, query = {}, headers = {}, body, correlationId, caller }: Sent): Request => {
  const { method, path, bodyType = 'application/json' } = routeOf(operation)
  const text = body === undefined ? '' : JSON.stringify(body)
  const search = new URLSearchParams(query).toString()
  const [, parameter = 'id'] = /\{(\w+)\}/.exec(path) ?? []
  const filledPath = path.replace(/\{\w+\}/, id ?? '')
  const allHeaders = {
    ...headers,
    authorization: `Bearer ${caller.tenant}/${caller.subject}`,
    'x-correlation-id': correlationId,
    ...(body === undefined ? {} : { 'content-type': bodyType, 'content-length': String(Buffer.byteLength(text)) }),
  }
  const named = Object.entries(allHeaders)
  return Object.assign(Readable.from(text === '' ? [] : [Buffer.from(text)]), {
    method,
    url: search === '' ? filledPath : `${filledPath}?${search}`,
    path: filledPath,
    params: id === undefined ? {} : { [parameter]: id },
    headers: Object.fromEntries(named),
    headersDistinct: Object.fromEntries(named.map(([name, value]) => [name, [value]])),
    accepts: (types: readonly string[]) => types.find(type => type === headers['accept']) ?? types[0],
    socket: { remoteAddress: '127.0.0.1' },
    complete: true,
  }) as never
}

type AnswerWithoutClose = Omit<Answer, 'close'>

const answerOf = (status: number, headers: Readonly<Record<string, string>>, body: unknown): AnswerWithoutClose => {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const parsed = text.startsWith('{') ? JSON.parse(text) : undefined
  return { status, headers, body: parsed, text, code: status >= 400 ? parsed?.code : undefined }
}

/** Resolves with the answer. Never resolves if the process ends before it has one. */
export const send = async ({ pipeline, admission }: Instance, sent: Sent): Promise<Answer> => {
  const request = requestOf(sent)
  const locals: Record<string, unknown> = { correlationId: sent.correlationId, requestedVersion }
  const response = Object.assign(new EventEmitter(), { locals, req: request, closed: false })
  locals['turn'] = createRequestTurn(admission, strangerAccount('127.0.0.1'), closed => response.once('close', closed))
  const close = (): void => {
    response.closed = true
    response.emit('close')
  }
  try {
    const { status, body, stream, headers = {} } = await pipeline(request, response as never, routeOf(sent.operation))
    if (!stream) close()
    return { ...answerOf(status, headers, body), ...(stream && { stream }), close }
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem('internal_error')
    const document = documentOf(problem, { instance: request.path, correlationId: sent.correlationId })
    const answer = answerOf(document.status, problem.extras.headers ?? {}, document)
    close()
    return problem === error ? { ...answer, close } : { ...answer, close, fault: error }
  }
}
