import type { Request as Incoming, Response as Outgoing } from 'express'
import type { Principal } from '../../identity/principal.ts'
import { addressAccount } from '../server/loadShedding.ts'
import type { Holding } from '../server/capacity.ts'
import type { AccessControl } from './accessControl.ts'
import { callerOf } from './rateLimits.ts'
import { type Account, callerAccount, type Pace, refuseBusy, strangersAccount } from '../server/pacing.ts'
import type { AnyRoute } from '../route.ts'

/** Identification of the caller, then pacing and a request slot on the caller's account. */

/** Undefined for paths that are exempt from load shedding. */
export const holdingOf = ({ locals }: Outgoing): Holding | undefined => locals['holding'] as Holding | undefined

/** Resolves to the caller, or undefined for public routes, when pacing admits the request and it has a slot. */
export type Identification = (req: Incoming, res: Outgoing, declared: AnyRoute) => Promise<Principal | undefined>

export const createIdentification = ({ identify }: Pick<AccessControl, 'identify'>, pace: Pace): Identification => {
  const inTurn = async (account: Account, res: Outgoing): Promise<void> => {
    holdingOf(res)?.rest()
    await pace.turn(account)
    refuseBusy(pace, account, res)
  }

  const anybody = async (res: Outgoing): Promise<undefined> => {
    await inTurn(strangersAccount('open', res.locals['address']), res)
    holdingOf(res)?.work(addressAccount(res))
    return undefined
  }

  return async (req, res, { scope }) => {
    if (scope === 'none') return anybody(res)
    const principal = await identify(req).catch(async (refused: unknown) => {
      await inTurn(strangersAccount('refused', res.locals['address']), res)
      throw refused
    })
    await inTurn(callerAccount(principal), res)
    holdingOf(res)?.work(callerOf(principal))
    return principal
  }
}
