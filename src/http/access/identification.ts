import type { Request as Incoming, Response as Outgoing } from 'express'
import type { Principal } from '../../identity/principal.ts'
import { addressAccount, capacityLeaseOf } from '../server/loadShedding.ts'
import type { AccessControl } from './accessControl.ts'
import { callerOf } from './rateLimits.ts'
import { type Account, callerAccount, type Pace, refuseOverPace, anonymousAccount } from '../server/pacing.ts'
import type { AnyRoute } from '../route.ts'

/** Identification of the caller, then pacing and a request slot on the caller's account. */

/** Resolves to the caller, or undefined for public routes, when pacing admits the request and it has a slot. */
export type Identification = (req: Incoming, res: Outgoing, declared: AnyRoute) => Promise<Principal | undefined>

export const createIdentification = (
  { authenticateCounting }: Pick<AccessControl, 'authenticateCounting'>,
  pace: Pace,
): Identification => {
  const waitForPace = async (account: Account, res: Outgoing): Promise<void> => {
    capacityLeaseOf(res)?.release()
    await pace.admit(account)
    refuseOverPace(pace, account, res)
  }

  const admitAnonymous = async (res: Outgoing): Promise<undefined> => {
    await waitForPace(anonymousAccount('public', res.locals['address']), res)
    capacityLeaseOf(res)?.takeSlot(addressAccount(res))
    return undefined
  }

  return async (req, res, { scope }) => {
    if (scope === 'none') return admitAnonymous(res)
    const principal = await authenticateCounting(req).catch(async (refused: unknown) => {
      await waitForPace(anonymousAccount('refused', res.locals['address']), res)
      throw refused
    })
    await waitForPace(callerAccount(principal), res)
    capacityLeaseOf(res)?.takeSlot(callerOf(principal))
    return principal
  }
}
