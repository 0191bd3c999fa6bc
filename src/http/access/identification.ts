import type { Request as Incoming, Response as Outgoing } from 'express'
import type { Account } from '../../fairness/account.ts'
import { callerOf, type Principal } from '../../identity/principal.ts'
import { turnOf } from '../admission/requestTurn.ts'
import type { AccessControl } from './accessControl.ts'
import type { AnyRoute } from '../route.ts'

export type Identified = { readonly principal: Principal | undefined; readonly account: Account }

/** Resolves when it is the request's turn; `principal` is undefined for public routes. Throws Problem. */
export type Identification = (req: Incoming, res: Outgoing, route: AnyRoute) => Promise<Identified>

export const createIdentification =
  ({ authenticateCounting }: Pick<AccessControl, 'authenticateCounting'>): Identification =>
  async (req, res, { scope, underAnyLoad }) => {
    const turn = turnOf(res)
    // A caller is a stranger until its credential is verified, and so are those whose credential is refused.
    const asStranger = (): Promise<void> => turn.enter()
    if (scope === 'none') {
      if (!underAnyLoad) await asStranger()
      return { principal: undefined, account: turn.account() }
    }
    const principal = await authenticateCounting(req, asStranger).catch(async (refused: unknown) => {
      await asStranger()
      throw refused
    })
    await turn.enter({ tenant: principal.tenant, caller: callerOf(principal) })
    return { principal, account: turn.account() }
  }
