import type { Decider } from '../decider.ts'
import { PersistentMap, PersistentSet } from '../persistentMap.ts'
import type { TenantEvent } from './events.ts'

/** The decider of the status of tenants, which operators change. */

export type SuspendTenant = { type: 'SuspendTenant'; reason: string }
export type ReinstateTenant = { type: 'ReinstateTenant'; reason: string }
export type RevokeScope = { type: 'RevokeScope'; subject: string; scope: string; reason: string }
export type RestoreScope = { type: 'RestoreScope'; subject: string; scope: string; reason: string }
export type TenantCommand = SuspendTenant | ReinstateTenant | RevokeScope | RestoreScope

/** An operator's command is never refused; repeating it changes nothing. */
export type TenantCode = never

/** The status of the tenant, independent of its issuer. `revoked`: the revoked scopes of each subject. */
export type TenantState = {
  readonly isSuspended: boolean
  readonly revoked: PersistentMap<string, PersistentSet<string>>
}

const isRevoked = ({ revoked }: TenantState, { subject, scope }: RevokeScope | RestoreScope): boolean =>
  revoked.get(subject)?.has(scope) ?? false

const decide = (command: TenantCommand, tenant: TenantState): readonly TenantEvent[] => {
  const { reason } = command
  switch (command.type) {
    case 'SuspendTenant':
      return tenant.isSuspended ? [] : [{ type: 'TenantSuspended', data: { reason } }]
    case 'ReinstateTenant':
      return tenant.isSuspended ? [{ type: 'TenantReinstated', data: { reason } }] : []
    case 'RevokeScope':
      return isRevoked(tenant, command) ? [] : [{ type: 'ScopeRevoked', data: rightOf(command) }]
    case 'RestoreScope':
      return isRevoked(tenant, command) ? [{ type: 'ScopeRestored', data: rightOf(command) }] : []
  }
}

const rightOf = ({ subject, scope, reason }: RevokeScope | RestoreScope) => ({ subject, scope, reason })

const evolve = (tenant: TenantState, event: TenantEvent): TenantState => {
  switch (event.type) {
    case 'TenantSuspended':
      return { ...tenant, isSuspended: true }
    case 'TenantReinstated':
      return { ...tenant, isSuspended: false }
    case 'ScopeRevoked':
    case 'ScopeRestored': {
      const { subject, scope } = event.data
      const before = tenant.revoked.get(subject) ?? PersistentSet.of<string>()
      const scopes = event.type === 'ScopeRevoked' ? before.with(scope) : before.without(scope)
      const revoked = scopes.size === 0 ? tenant.revoked.without(subject) : tenant.revoked.with(subject, scopes)
      return { ...tenant, revoked }
    }
  }
}

export const tenantDecider: Decider<TenantState, TenantCommand, TenantEvent, TenantCode> = {
  initial: { isSuspended: false, revoked: PersistentMap.of() },
  decide,
  evolve,
  growth: {
    SuspendTenant: 'unlimited',
    ReinstateTenant: 'unlimited',
    RevokeScope: 'unlimited',
    RestoreScope: 'unlimited',
  },
}
