import type { Request as Incoming, Response as Outgoing } from 'express'
import type { z } from 'zod'
import { waitMaxMs } from '../../settings/timeBudgets.ts'
import type { Principal } from '../../identity/principal.ts'
import { deadlineOf } from '../response/deadlines.ts'
import { Problem, PROBLEMS, type Violation } from '../problems/problemCatalogue.ts'
import type { AnyRoute } from '../route.ts'
import type { Call, Services } from '../services.ts'
import { turnOf } from '../admission/requestTurn.ts'
import type { Version } from '../versions/index.ts'
import { requestedVersionOf } from '../versions/requestedVersion.ts'
import { readBody, sendContinueTo } from './body.ts'
import { ifMatch, ifNoneMatch } from './entityTags.ts'
import { scopedKeyOf } from './idempotencyKey.ts'
import { minPositionOf, preferenceOf } from './preference.ts'
import { violationsOf } from './violations.ts'
import { wordsFor } from './violationWords.ts'

/** The checks of path, headers, body and query, in the order of the contract, and the call that they lead to. */

export type RequestToCheck = {
  readonly req: Incoming
  readonly res: Outgoing
  readonly route: AnyRoute
  readonly principal: Principal | undefined
}

/**
 * The call with its checked parameters. Throws the Problem of the first check that fails.
 * Long because the order of the checks is the contract's and stands in one place.
 */
export const checkedCall = async (services: Services, { req, res, route, principal }: RequestToCheck) => {
  const params = checkedParams(req, route)
  const accept = acceptedType(req, route)
  const sent = await readBody(req, route, {
    deadlineMs: services.bodyDeadlineMs,
    turn: turnOf(res),
    sendContinue: () => sendContinueTo(req, res),
  })
  // After the body, since 413 and 415 come before any other 400.
  const apiVersion = checkedVersion(res)
  const body = route.body && checked(route.body, sent, '')
  const query = checkedQuery(req, route)
  const keyHeaders = req.headersDistinct['idempotency-key']
  return {
    ...services,
    params,
    query,
    body,
    path: req.path,
    apiVersion,
    correlationId: String(res.locals['correlationId']),
    idempotency: principal && (await scopedKeyOf(services.ledger, route, principal, keyHeaders)),
    ifMatch: checkedIfMatch(req, route),
    ifNoneMatch: headerOf(req, 'if-none-match'),
    // RFC 9110 §14.2: Range is defined for GET only.
    range: req.method === 'GET' ? headerOf(req, 'range') : undefined,
    ifRange: headerOf(req, 'if-range'),
    accept,
    lastEventId: headerOf(req, 'last-event-id'),
    minPosition: route.isList ? minPositionOf(headerOf(req, 'if-min-position')) : undefined,
    prefer: preferenceOf(headerOf(req, 'prefer'), waitMaxMs(deadlineOf(route))),
    nextTurn: () => turnOf(res).enter(),
    onClose: (callback: () => void): void => (res.closed ? callback() : void res.once('close', callback)),
  }
}

const headerOf = (req: Incoming, name: string): string | undefined => {
  const value = req.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** The media type of the response by Accept: the first that the route offers, if the caller accepts any. */
const acceptedType = (req: Incoming, { offers = ['application/json'] }: AnyRoute): string => {
  const accepted = req.accepts([...offers])
  if (accepted === false) throw new Problem('not_acceptable', { detail: `Available: ${offers.join(', ')}.` })
  return accepted
}

const checkedVersion = (res: Outgoing): Version => {
  const { version, refusal, available = [] } = requestedVersionOf(res)
  if (refusal)
    throw new Problem(refusal, {
      detail: `${PROBLEMS[refusal].title} The available versions are ${available.join(' and ')}.`,
    })
  return version
}

const checked = (schema: z.ZodType, value: unknown, pointer: string): unknown => {
  const parsed = schema.safeParse(value, { error: wordsFor(pointer) })
  if (parsed.success) return parsed.data
  throw new Problem('validation_failed', { errors: violationsOf(parsed.error, pointer) })
}

// A malformed id cannot exist: 404, before anything is looked up.
const checkedParams = (req: Incoming, { params, scope }: AnyRoute): unknown => {
  const parsed = params?.safeParse(req.params, { error: wordsFor('') })
  if (parsed?.success === false) throw new Problem('resource_not_found', detailOfParams(parsed.error, scope))
  return parsed?.data
}

const detailOfParams = ({ issues: [issue] }: z.ZodError, scope: AnyRoute['scope']): { readonly detail?: string } => {
  if (scope === 'none')
    return { detail: 'Nothing has this name. /docs describes the path and the names that it takes.' }
  return issue?.code === 'invalid_format' ? { detail: issue.message } : {}
}

const checkedQuery = (req: Incoming, { query }: AnyRoute): unknown => {
  const question = req.url.indexOf('?')
  const parameters = new URLSearchParams(question < 0 ? '' : req.url.slice(question))
  // One pass over the parameters, since a URL may hold thousands of them.
  const counts = new Map<string, number>()
  for (const name of parameters.keys()) counts.set(name, (counts.get(name) ?? 0) + 1)
  const wrong = [...counts].filter(([name, count]) => count > 1 || !Object.hasOwn(query?.shape ?? {}, name))
  if (wrong.length > 0) {
    const errors = wrong.map(([name, count]) => wrongParameter(name, count, Object.keys(query?.shape ?? {})))
    throw new Problem('unknown_parameter', { errors })
  }
  return query && checked(query, Object.fromEntries(parameters), '?')
}

const wrongParameter = (name: string, count: number, names: readonly string[]): Violation => {
  const pointer = `?${encodeURIComponent(name)}`
  if (count > 1) return { pointer, code: 'repeated_parameter', detail: 'A parameter may be given only once.' }
  const existing =
    names.length === 0 ? 'This path has none.' : `Supported parameters, described at /docs: ${names.join(', ')}.`
  return { pointer, code: 'unknown_parameter', detail: `Unknown parameter. ${existing}` }
}

const checkedIfMatch = (req: Incoming, route: AnyRoute): Call<never, never, never>['ifMatch'] => {
  if (!route.ifMatch) return undefined
  const header = headerOf(req, 'if-match')
  if (header === undefined)
    throw new Problem('precondition_required', {
      detail: 'Send If-Match with the ETag that you got when you last read the resource.',
    })
  const matches = ifMatch(header)
  const ifNoneMatchHeader = headerOf(req, 'if-none-match')
  if (ifNoneMatchHeader === undefined) return matches
  // RFC 9110 §13.1.2: a match of If-None-Match is 304 for GET, and a failed precondition for other methods.
  const isCurrent = ifNoneMatch(ifNoneMatchHeader)
  return etag => matches(etag) && !isCurrent(etag)
}
