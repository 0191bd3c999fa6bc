import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import express, {
  type Express,
  type Request as Incoming,
  type RequestHandler,
  type Response as Outgoing,
} from 'express'
import type { ApiVersionUsage } from '../versions/apiVersionUsage.ts'
import { probeAccount, strangerAccount } from '../../fairness/account.ts'
import { workFor } from '../../fairness/currentAccount.ts'
import type { Logger } from '../../ports.ts'
import { type AddressOf, createAddressOf, networkOf } from '../request/clientAddress.ts'
import { announcedBytesOf, bodyArrived, sendContinueTo } from '../request/body.ts'
import { createRequestMetrics } from './requestMetrics.ts'
import type { RequestPipeline } from '../requestPipeline.ts'
import { type ConsoleSettings, mountConsole } from './consoleMount.ts'
import { correlationIdOf, traceIdOf } from '../request/correlation.ts'
import { SECOND_MS } from '../../lib/time.ts'
import { framingFault, normalizeUrl } from '../request/framing.ts'
import { type IssuerHandler, mountIssuer } from './issuerMount.ts'
import { type Admission, createRequestTurn, turnOf } from '../admission/requestTurn.ts'
import { methodNotAllowed, Problem, retryOf } from '../problems/problemCatalogue.ts'
import { sendProblem, sendReply } from '../response/respond.ts'
import type { AnyRoute } from '../route.ts'
import { VERSIONS } from '../versions/index.ts'
import { requestedVersionOf, type ResolveVersion, resolveVersionWithout } from '../versions/requestedVersion.ts'
import { routeIn } from '../translation/translation.ts'

export type AppDependencies = {
  readonly routes: readonly AnyRoute[]
  readonly pipeline: RequestPipeline
  readonly logger: Logger
  readonly admission: Admission
  /** Aborts before `stopping`: from then on responses close their connections, so that clients open others elsewhere. */
  readonly draining: AbortSignal
  /** Aborts at shutdown: from then on requests on open connections are refused. */
  readonly stopping: AbortSignal
  /** The client address behind trusted proxies; the address of the peer when absent. */
  readonly addressOf?: AddressOf
  /** The embedded issuer and the path that it is mounted at. */
  readonly issuer?: { readonly path: string; readonly handler: IssuerHandler }
  /** The page /console; absent where it is not served. */
  readonly console?: ConsoleSettings
  /** Counts the requests of identified callers by version, route and client. */
  readonly usage?: Pick<ApiVersionUsage, 'count'>
  /** The version of each request by its header; by default every version is served. */
  readonly resolveVersion?: ResolveVersion
}

/** The request listener. Malformed requests do not reach Express, which would answer them with pages of its own. */
export const createApp = (dependencies: AppDependencies): RequestListener => {
  const app: RequestListener = routerOf(dependencies)
  const { routes, admission, draining, stopping } = dependencies
  const { addressOf = createAddressOf([]), resolveVersion = resolveVersionWithout(new Set()) } = dependencies
  const probes = new Set(routes.filter(({ underAnyLoad }) => underAnyLoad).map(({ path }) => path))
  const distrusted = new WeakSet<Socket>()
  const record = createRequestMetrics()
  return (req, res) => {
    // Bytes after an ambiguous request may be smuggled: they are not processed as a request.
    if (distrusted.has(req.socket)) return undefined
    if (draining.aborted) res.shouldKeepAlive = false
    const fault = framingFault(req)
    if (fault?.code === 'bad_request_framing') distrusted.add(req.socket)
    if (!fault) req.url = normalizeUrl(req.url ?? '', req.method ?? '')
    const isProbe = !fault && probes.has(pathOf(req))
    const address = addressOf(req)
    const account = (isProbe ? probeAccount : strangerAccount)(networkOf(address))
    const turn = createRequestTurn(admission, account, closed => res.once('close', closed))
    turn.resize(announcedBytesOf(req))
    const locals = {
      correlationId: correlationIdOf(req),
      address,
      turn,
      startedAt: performance.now(),
      requestedVersion: resolveVersion(versionHeaderOf(req)),
    }
    const response = Object.assign(res, { locals })
    res.once('close', () => record(response))
    // A probe gets no error that its contract does not have.
    if (isProbe)
      return void turn.enter().then(
        () => app(req, res),
        () => req.destroy(),
      )
    const refusal = fault ?? (stopping.aborted && new Problem('shutting_down', { headers: { Connection: 'close' } }))
    return refusal ? refuse(req, response, refusal) : app(req, res)
  }
}

/** Sends the problem when it is the request's turn: refusals cost time too. */
const refuse = (req: IncomingMessage, res: Parameters<typeof sendProblem>[1], problem: Problem): void => {
  const send = (refusal: Problem): void => sendProblem(req, res, refusal)
  turnOf(res)
    .enter()
    .then(() => send(problem), send)
}

const pathOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] ?? ''

/** Node joins several headers of this name with commas, which is no version. */
const versionHeaderOf = ({ headers }: IncomingMessage): string | undefined => headers['api-version']?.toString()

/** The path in Express's syntax: `{id}` becomes `:id`, and the colon of an action is escaped. */
const expressPathOf = ({ path }: AnyRoute): string => path.replaceAll(':', '\\:').replaceAll(/\{(\w+)\}/g, ':$1')

/** The routes by path. Paths that end in an action come first, since Express would match `inv_…:approve` as an id. */
const routesByPath = (routes: readonly AnyRoute[]): ReadonlyMap<string, readonly AnyRoute[]> => {
  const isAction = ({ path }: AnyRoute): boolean => path.includes(':')
  return Map.groupBy([...routes.filter(isAction), ...routes.filter(route => !isAction(route))], expressPathOf)
}

const allowOf = (routes: readonly AnyRoute[]): string =>
  routes.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')

/** The Express application: the routes in the order of their declaration, then 405, 404 and error handling. */
const routerOf = ({ routes, issuer, console: page, ...exchange }: AppDependencies): Express => {
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')

  if (issuer) app.use(issuer.path, labelled('issuer'), takeTurn, waitForBody, mountIssuer(issuer.handler))
  if (page) app.use('/console', labelled('console'), takeTurn, mountConsole(page))
  for (const [path, endpoints] of routesByPath(routes)) {
    for (const route of endpoints) app[methodOf(route)](path, respondInVersion(route, exchange))
    app.all(path, (req, res) => {
      // A path with a malformed id is 404 for any method.
      const isValidPath = endpoints[0]?.params?.safeParse(req.params).success ?? true
      refuse(req, res, isValidPath ? methodNotAllowed(allowOf(endpoints)) : new Problem('route_not_found'))
    })
  }
  app.use((req: Incoming, res: Outgoing) => refuse(req, res, new Problem('route_not_found')))
  app.use((error: unknown, req: Incoming, res: Outgoing, _next: () => void) => {
    if (error instanceof Problem) return sendProblem(req, res, error)
    // Express itself throws only for malformed requests, such as a path that does not decode.
    refuse(req, res, new Problem(error instanceof URIError ? 'route_not_found' : 'bad_request_framing'))
  })
  return app
}

/** Names the route of a request that no declared route answers, for the metric of requests. */
const labelled =
  (route: string): RequestHandler =>
  (_req, res, next) => {
    res.locals['route'] = route
    next()
  }

/** The turn of a request that needs no credential. */
const takeTurn: RequestHandler = async (_req, res, next) => {
  const turn = turnOf(res)
  await turn.enter()
  workFor(turn.account(), next)
}

/** Far above the largest form that the issuer accepts. */
const ISSUER_BODY_MAX_BYTES = 32 * 1024
const ISSUER_BODY_DEADLINE_MS = 30_000

/** Waits for the body before the issuer reads it, so a request holds no turn while its body arrives. */
const waitForBody = async (req: Incoming, res: Outgoing, next: (problem?: Problem) => void): Promise<void> => {
  try {
    await bodyArrived(req, ISSUER_BODY_MAX_BYTES, {
      deadlineMs: ISSUER_BODY_DEADLINE_MS,
      turn: turnOf(res),
      sendContinue: () => sendContinueTo(req, res),
    })
  } catch (error) {
    return next(error instanceof Problem ? error : new Problem('internal_error'))
  }
  next()
}

const methodOf = (endpoint: AnyRoute) => endpoint.method.toLowerCase() as 'get' | 'post' | 'patch' | 'delete'

type Exchange = Pick<AppDependencies, 'pipeline' | 'logger' | 'usage'>

/** The handler of a route, which answers each request by its version. */
const respondInVersion = (endpoint: AnyRoute, dependencies: Exchange) => {
  const route = `${endpoint.method} ${endpoint.path}`
  const byVersion = new Map(VERSIONS.map(version => [version, routeIn(endpoint, version)]))
  return (req: Incoming, res: Outgoing): Promise<void> => {
    res.locals['route'] = route
    return respond(req, res, byVersion.get(requestedVersionOf(res).version) ?? endpoint, dependencies)
  }
}

/** The problem to send, once it may be sent: with what is left of its Retry-After. */
const held = async (res: Outgoing, problem: Problem): Promise<Problem> => {
  const { code, extras } = problem
  if (code !== 'rate_limited') return problem
  const { after_seconds = 0 } = retryOf(code, extras)
  const heldSeconds = Math.floor((await turnOf(res).holdRefusal(after_seconds * SECOND_MS)) / SECOND_MS)
  return new Problem(code, { ...extras, afterSeconds: Math.max(1, after_seconds - heldSeconds) })
}

const respond = async (req: Incoming, res: Outgoing, endpoint: AnyRoute, { pipeline, logger, usage }: Exchange) => {
  try {
    await sendReply(req, res, await pipeline(req, res, endpoint))
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem('internal_error')
    if (problem !== error)
      logger.error({ correlationId: res.locals['correlationId'], trace_id: traceIdOf(req), error }, 'unexpected error')
    sendProblem(req, res, await held(res, problem))
  } finally {
    const { correlationId, startedAt, tenant, client, route } = res.locals
    const { version, refusal } = requestedVersionOf(res)
    if (client !== undefined && refusal === undefined)
      usage?.count(version, String(route), { tenant: String(tenant), client: String(client) })
    const tookMs = Math.round((performance.now() - Number(startedAt)) * 10) / 10
    const trace_id = traceIdOf(req)
    logger.info(
      { correlationId, trace_id, tenant, route: endpoint.operationId, status: res.statusCode, tookMs },
      'request',
    )
  }
}
