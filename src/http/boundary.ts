import type { Request as Incoming, Response as Outgoing } from 'express'
import type { z } from 'zod'
import { newUuid } from '../commands/identifiers.ts'
import { waitMaxMs } from '../commands/budgets.ts'
import { asOneCommand } from '../commands/effect.ts'
import type { Context, Ledger } from '../commands/handle.ts'
import type { Principal } from '../identity/principal.ts'
import type { World } from '../ports.ts'
import { addressAccount } from './server/loadShedding.ts'
import { deadlineOf, withDeadline, unavailableAsProblem, withoutEffect } from './response/deadlines.ts'
import { withAudit } from './resources/audit.ts'
import { continueTo, readBody } from './request/body.ts'
import { ifMatch, ifNoneMatch } from './request/conditional.ts'
import { traceparentOf } from './request/correlation.ts'
import { scopedKeyOf } from './request/idempotencyKey.ts'
import { type Authenticate, createAccessControl } from './access/accessControl.ts'
import { createIdentification, holdingOf } from './access/identification.ts'
import { callerOf } from './access/rateLimits.ts'
import { Problem, type Violation } from './response/problemCatalogue.ts'
import type { AnyRoute, Call, Reply, Services } from './route.ts'
import { minPositionOf, preferenceOf } from './request/preference.ts'
import { isVersion, OLDEST_VERSION } from './versions/index.ts'
import { violationsOf } from './request/violations.ts'

/** The request pipeline: identification, access control and every check of a request, in the order of the contract. */

/** Resolves to the reply of the route's handler. Throws the Problem of the first check that fails. */
export type Boundary = (req: Incoming, res: Outgoing, declared: AnyRoute) => Promise<Reply>

/** The path in Express's syntax: `{id}` becomes `:id`, and the colon of an action is escaped. */
const pathOf = ({ path }: AnyRoute): string => path.replaceAll(':', '\\:').replaceAll(/\{(\w+)\}/g, ':$1')

/** The routes by path. Paths that end in an action come first, since Express would match `inv_…:approve` as an id. */
export const routesByPath = (routes: readonly AnyRoute[]): ReadonlyMap<string, readonly AnyRoute[]> => {
  const isAction = ({ path }: AnyRoute): boolean => path.includes(':')
  return Map.groupBy([...routes.filter(isAction), ...routes.filter(declared => !isAction(declared))], pathOf)
}

/** The value of Allow. */
export const allowOf = (declared: readonly AnyRoute[]): string =>
  declared.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')

const headerOf = (req: Incoming, name: string): string | undefined => {
  const value = req.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

export const createBoundary = (services: Services, authenticate: Authenticate): Boundary => {
  const accessControl = createAccessControl(services, authenticate)
  const identified = createIdentification(accessControl, services.pace)

  const checkedCall = async (req: Incoming, res: Outgoing, declared: AnyRoute, principal: Principal | undefined) => {
    const params = checkedParams(req, declared)
    const accept = acceptedType(req, declared)
    const asked = headerOf(req, 'api-version') ?? OLDEST_VERSION
    if (isVersion(asked)) res.locals['apiVersion'] = asked
    const sent = await readBody(req, declared, {
      caller: principal ? callerOf(principal) : addressAccount(res),
      deadlineMs: services.bodyDeadlineMs,
      holding: holdingOf(res),
      goOn: () => continueTo(req, res),
    })
    // After the body, since 413 and 415 come before any other 400.
    const apiVersion = checkedVersion(asked)
    const body = declared.body && checked(declared.body, sent, '')
    const query = checkedQuery(req, declared)
    const keyLines = req.headersDistinct['idempotency-key']
    return {
      ...services,
      params,
      query,
      body,
      path: req.path,
      apiVersion,
      correlationId: String(res.locals['correlationId']),
      idempotency: principal && (await scopedKeyOf(services.ledger, declared, principal, keyLines)),
      ifMatch: checkedIfMatch(req, declared),
      ifNoneMatch: headerOf(req, 'if-none-match'),
      // RFC 9110 §14.2: Range is defined for GET only.
      range: req.method === 'GET' ? headerOf(req, 'range') : undefined,
      ifRange: headerOf(req, 'if-range'),
      accept,
      lastEventId: headerOf(req, 'last-event-id'),
      minPosition: declared.isList ? minPositionOf(headerOf(req, 'if-min-position')) : undefined,
      prefer: preferenceOf(headerOf(req, 'prefer'), waitMaxMs(deadlineOf(declared))),
      onClose: (callback: () => void): void => (res.closed ? callback() : void res.once('close', callback)),
    }
  }

  const answer: Boundary = async (req, res, declared) => {
    const { ledger } = services
    const principal = await identified(req, res, declared)
    // The time in the queue before is not part of the deadline.
    const startedAtMs = ledger.world.monotonicMs()
    const correlationId = String(res.locals['correlationId'])
    const context = principal && contextOf(principal, declared, { req, correlationId, world: ledger.world })
    const recheck = () => accessControl.recheck(req, declared)
    let resource = declared.audited === 'path' ? pathId(req) : null
    const recorded = <T>(work: () => Promise<T>): Promise<T> => {
      if (context === undefined || !declared.audited) return work()
      const attempted = { operation: declared.operationId, resource: () => resource, context }
      // A refusal that cannot be recorded is not sent, and the request has no effect.
      return withoutEffect(() => withAudit(services, attempted, () => unavailableAsProblem(declared, work)))
    }
    const { call, admitted, leftMs } = await recorded(async () => {
      const admitted = principal && (await accessControl.admit(principal, declared, res))
      const leftMs = deadlineOf(declared) - (ledger.world.monotonicMs() - startedAtMs)
      return { call: await checkedCall(req, res, declared, principal), admitted, leftMs }
    })
    resource ??= resourceInBody(declared, call.body)
    const handled = (effects: Ledger) =>
      declared.handle({ ...call, ledger: effects, principal: admitted, context, recheck, leftMs } as never)
    return withDeadline(ledger.world, declared, leftMs, () => recorded(() => asOneCommand(ledger, handled)))
  }
  return (req, res, declared) => unavailableAsProblem(declared, () => answer(req, res, declared))
}

/** The id in the path, for the audit record of a request whose path is not checked yet; null for anything but an id. */
const pathId = ({ params }: Incoming): string | null => {
  const { id } = params
  return typeof id === 'string' && ID.test(id) ? id : null
}
const ID = /^[a-z]{2,3}_[0-9A-Z]{26}$/

/** The resource that the checked body names, for routes that declare where. */
const resourceInBody = ({ audited }: AnyRoute, body: unknown): string | null => {
  if (typeof audited !== 'object' || typeof body !== 'object' || body === null) return null
  const id: unknown = Reflect.get(body, audited.bodyMember)
  return typeof id === 'string' ? id : null
}

/** The media type of the response by Accept: the first that the route offers, if the caller accepts any. */
const acceptedType = (req: Incoming, { offers = ['application/json'] }: AnyRoute): string => {
  const accepted = req.accepts([...offers])
  if (accepted === false) throw new Problem('not_acceptable', { detail: `There is ${offers.join(' and ')}.` })
  return accepted
}

const checkedVersion = (asked: string): string => {
  if (!isVersion(asked)) throw new Problem('unsupported_api_version')
  return asked
}

const checked = (schema: z.ZodType, value: unknown, pointer: string): unknown => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new Problem('validation_failed', { errors: violationsOf(parsed.error, pointer) })
}

// A malformed id cannot exist: 404, before anything is looked up.
const checkedParams = (req: Incoming, { params }: AnyRoute): unknown => {
  const parsed = params?.safeParse(req.params)
  if (parsed?.success === false) throw new Problem('resource_not_found')
  return parsed?.data
}

const checkedQuery = (req: Incoming, { query }: AnyRoute): unknown => {
  const given = new URL(req.url, 'http://localhost').searchParams
  // One pass over the parameters, since no limit applies before this check.
  const counts = new Map<string, number>()
  for (const name of given.keys()) counts.set(name, (counts.get(name) ?? 0) + 1)
  const wrong = [...counts].filter(([name, count]) => count > 1 || !Object.hasOwn(query?.shape ?? {}, name))
  if (wrong.length > 0) throw new Problem('unknown_parameter', { errors: wrong.map(wrongParameter) })
  return query && checked(query, Object.fromEntries(given), '?')
}

const wrongParameter = ([name, count]: readonly [name: string, count: number]): Violation => ({
  pointer: `?${encodeURIComponent(name)}`,
  code: count > 1 ? 'repeated_parameter' : 'unknown_parameter',
  detail: 'This list has no such parameter, or it was given more than once.',
})

const checkedIfMatch = (req: Incoming, declared: AnyRoute): Call<never, never, never>['ifMatch'] => {
  if (!declared.ifMatch) return undefined
  const header = headerOf(req, 'if-match')
  if (header === undefined)
    throw new Problem('precondition_required', { detail: 'Send If-Match with the ETag that you read.' })
  const matches = ifMatch(header)
  const known = headerOf(req, 'if-none-match')
  if (known === undefined) return matches
  // RFC 9110 §13.1.2: a match of If-None-Match is 304 for GET, and a failed precondition for other methods.
  const isKnownAlready = ifNoneMatch(known)
  return etag => matches(etag) && !isKnownAlready(etag)
}

type About = { readonly req: Incoming; readonly correlationId: string; readonly world: World }
const contextOf = (principal: Principal, declared: AnyRoute, { req, correlationId, world }: About): Context => {
  const traceparent = traceparentOf(req)
  return {
    tenant: principal.tenant,
    subject: principal.subject,
    client: principal.client,
    authority: declared.scope,
    correlationId,
    commandId: newUuid(world),
    at: new Date(world.now()).toISOString(),
    ...(traceparent === undefined ? {} : { traceparent }),
  }
}
