import { timeNow } from '../lib/time.ts'
import type { Request as Incoming, Response as Outgoing } from 'express'
import { newUuid } from '../lib/identifiers.ts'
import { asOneCommand } from '../commands/asOneCommand.ts'
import type { Context, Ledger } from '../commands/commandHandler.ts'
import { workFor } from '../fairness/currentAccount.ts'
import { callerOf, type Principal } from '../identity/principal.ts'
import type { World } from '../ports.ts'
import { type AccessControl, type Authenticate, createAccessControl } from './access/accessControl.ts'
import { turnOf } from './admission/requestTurn.ts'
import { type NamedResource, withMissingFirst } from './access/existence.ts'
import { challengeOf } from './access/challenge.ts'
import { checkedCall } from './request/requestValidation.ts'
import { traceparentOf } from './request/correlation.ts'
import { withDenialRecording } from './access/denialRecording.ts'
import { deadlineOf, withDeadline, unavailableAsProblem, unavailableAs503 } from './response/deadlines.ts'
import { createAnswerByKey } from './response/usedKeys.ts'
import { Problem } from './problems/problemCatalogue.ts'
import type { AnyRoute, Reply } from './route.ts'
import type { Services } from './services.ts'

/** The checks of a request in the order that the contract specifies; then the handler. */

/** Resolves to the reply of the route's handler. Throws the Problem of the first check that fails. */
export type RequestPipeline = (req: Incoming, res: Outgoing, route: AnyRoute) => Promise<Reply>

/** Long because the checks stand in one place, in their order. */
export const createRequestPipeline = (services: Services, authenticate: Authenticate): RequestPipeline => {
  const accessControl = createAccessControl(services, authenticate)
  const answerByKey = createAnswerByKey()

  const answerTo = async (principal: Principal | undefined, { req, res, route }: Request): Promise<Reply> => {
    const { ledger } = services
    // The deadline begins here: the wait for a turn is not counted.
    const startedAtMs = ledger.world.monotonicMs()
    const correlationId = String(res.locals['correlationId'])
    const context = principal && contextOf(principal, route, { req, correlationId, world: ledger.world })
    let resource = route.audited === 'path' ? pathId(req) : null
    // Wraps the checks and the handler separately, because only the handler runs under the deadline.
    const recordingDenials = <T>(work: () => Promise<T>): Promise<T> => {
      if (context === undefined || !route.audited) return work()
      const attempted = { operation: route.operationId, resource: () => resource, context }
      // When the audit record of a denial cannot be appended, the caller gets 503 in its place. A denied request did nothing.
      return unavailableAs503(() => withDenialRecording(services, attempted, () => unavailableAsProblem(route, work)))
    }
    const checked = await recordingDenials(async () => {
      // Limits come before permissions, whose refusals are appended as audit records: a caller over its limits causes no appends.
      if (principal) await accessControl.countRequest(principal, route, res)
      const authorized = principal && (await accessControl.checkPermissions(principal, route))
      // Computed before the body is read, since the arrival of the body has a deadline of its own.
      const leftMs = deadlineOf(route) - (ledger.world.monotonicMs() - startedAtMs)
      const named = namedIn(req, route, principal)
      const check = () => checkedCall(services, { req, res, route, principal })
      return { ...(await withMissingFirst(ledger.aggregates, named, check)), principal: authorized, leftMs }
    })
    resource ??= resourceInBody(route, checked.body)
    const guard = accessControl.guardOf(req, route, checked.principal)
    const runHandler = (trackedLedger: Ledger) =>
      answerByKey(route, { ...checked, ...guard, ledger: trackedLedger, context } as never)
    const execute = () => recordingDenials(() => asOneCommand(ledger, runHandler))
    return withDeadline(ledger.world, route, checked.leftMs, execute)
  }
  const answer: RequestPipeline = async (req, res, route) => {
    const { principal, account } = await identify(accessControl, { req, res, route })
    return workFor(account, () => answerTo(principal, { req, res, route }))
  }
  return async (req, res, route) => {
    try {
      return await unavailableAsProblem(route, () => answer(req, res, route))
    } catch (error) {
      if (error instanceof Problem) res.locals['challenge'] = challengeOf(error, services.publicUrl)
      throw error
    }
  }
}

type Request = { readonly req: Incoming; readonly res: Outgoing; readonly route: AnyRoute }

/** Resolves when it is the request's turn; `principal` is undefined for public routes. Throws Problem. */
const identify = async ({ authenticateCounting }: AccessControl, { req, res, route }: Request) => {
  const turn = turnOf(res)
  // A caller is a stranger until its credential is verified, and so are those whose credential is refused.
  const asStranger = (): Promise<void> => turn.enter()
  if (route.scope === 'none') {
    if (!route.underAnyLoad) await asStranger()
    return { principal: undefined, account: turn.account() }
  }
  const principal = await authenticateCounting(req, asStranger).catch(async (refused: unknown) => {
    await asStranger()
    throw refused
  })
  await turn.enter({ tenant: principal.tenant, caller: callerOf(principal) })
  return { principal, account: turn.account() }
}

/** The id in the path, for the audit record of a request whose path is not checked yet; null for anything but an id. */
const pathId = ({ params }: Incoming): string | null => {
  const { id } = params
  return typeof id === 'string' && ID.test(id) ? id : null
}
const ID = /^[a-z]{2,3}_[0-9A-Z]{26}$/

const namedIn = (req: Incoming, { showsDeleted }: AnyRoute, principal: Principal | undefined): NamedResource => ({
  id: principal === undefined ? null : pathId(req),
  tenant: principal?.tenant ?? '',
  showsDeleted,
})

/** The resource that the checked body names, for routes that declare where. */
const resourceInBody = ({ audited }: AnyRoute, body: unknown): string | null => {
  if (typeof audited !== 'object' || typeof body !== 'object' || body === null) return null
  const id: unknown = Reflect.get(body, audited.bodyMember)
  return typeof id === 'string' ? id : null
}

type RequestContext = { readonly req: Incoming; readonly correlationId: string; readonly world: World }
const contextOf = (principal: Principal, route: AnyRoute, { req, correlationId, world }: RequestContext): Context => {
  const traceparent = traceparentOf(req)
  return {
    tenant: principal.tenant,
    subject: principal.subject,
    client: principal.client,
    ...(principal.kind === 'workload' ? { workload: true as const } : {}),
    authority: route.scope,
    correlationId,
    commandId: newUuid(world),
    at: timeNow(world),
    ...(route.endsWork ? { quota: { use: 'completion' as const } } : {}),
    ...(traceparent === undefined ? {} : { traceparent }),
  }
}
