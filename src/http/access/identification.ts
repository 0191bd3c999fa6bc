import type { Request as Incoming, Response as Outgoing } from 'express'
import type { Account } from '../../fairness/account.ts'
import type { Principal } from '../../identity/principal.ts'
import { strangerOf, turnOf } from '../server/requestTurn.ts'
import type { AccessControl } from './accessControl.ts'
import { callerOf } from './rateLimits.ts'
import type { AnyRoute } from '../route.ts'

/** Identification of the caller, and the turn of its account. */

export type Identified = { readonly principal: Principal | undefined; readonly account: Account }

/** Resolves when it is the request's turn; `principal` is undefined for public routes. Throws Problem. */
export type Identification = (req: Incoming, res: Outgoing, declared: AnyRoute) => Promise<Identified>

export const createIdentification =
  ({ authenticateCounting }: Pick<AccessControl, 'authenticateCounting'>): Identification =>
  async (req, res, { scope }) => {
    const turn = turnOf(res)
    const asStranger = async (): Promise<Identified> => {
      const account = strangerOf(res)
      await turn?.enter(account)
      return { principal: undefined, account }
    }
    if (scope === 'none') return asStranger()
    // A caller is a stranger until its credential is verified, and so are those whose credential is refused.
    const principal = await authenticateCounting(req, asStranger).catch(async (refused: unknown) => {
      await asStranger()
      throw refused
    })
    const account = { tenant: principal.tenant, caller: callerOf(principal) }
    await turn?.enter(account)
    return { principal, account }
  }
