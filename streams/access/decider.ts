import { type Decider, type Rejection, reject } from '../decider.ts'
import type { AccessCheck, AccessEvent } from './events.ts'

/** The decider of access records: each is recorded once. */

type AccessRequest = { readonly operation: string; readonly resource: string | null }
export type GrantAccess = AccessRequest & { type: 'GrantAccess'; reason?: string }
export type DenyAccess = AccessRequest & { type: 'DenyAccess'; check: AccessCheck; code: string; count?: number }
export type AccessCommand = GrantAccess | DenyAccess

export type AccessCode = 'concurrent_modification'

/** A decision about access has a stream of its own with a single event. */
export type AccessState = { readonly status: 'none' } | { readonly status: 'recorded' }

const decide = (command: AccessCommand, access: AccessState): readonly AccessEvent[] | Rejection<AccessCode> => {
  if (access.status === 'recorded') return reject('concurrent_modification')
  const { operation, resource } = command
  if (command.type === 'GrantAccess') {
    const given = command.reason === undefined ? {} : { reason: command.reason }
    return [{ type: 'AccessGranted', data: { operation, resource, ...given } }]
  }
  const { check, code, count } = command
  const counted = count === undefined ? {} : { count }
  return [{ type: 'AccessDenied', data: { operation, resource, check, code, ...counted } }]
}

export const accessDecider: Decider<AccessState, AccessCommand, AccessEvent, AccessCode> = {
  initial: { status: 'none' },
  decide,
  evolve: () => ({ status: 'recorded' }),
  growth: { GrantAccess: 'unlimited', DenyAccess: 'unlimited' },
}
