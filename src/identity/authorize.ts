import type { Principal, PrincipalKind, Scope } from './principal.ts'

export type Caller = {
  readonly subject: string
  readonly client: string
  /** Whether the client acted by itself; absent where it did not, or where nothing is known of it. */
  readonly workload?: true
}

/** The requirements of an operation. Absent members are not checked. */
export type Demand = {
  readonly scope: Scope
  /** The permitted kinds of credential; all when absent. */
  readonly kinds?: readonly PrincipalKind[]
  readonly tenant?: string
  /** The owner of the resource, if only the same caller may see it. */
  readonly owner?: Caller
  /** Four eyes: the caller that must not decide. */
  readonly otherThan?: Caller
}

export type Check = 'credential' | 'scope' | 'tenant' | 'ownership' | 'state' | 'policy'

export type Denial = {
  readonly refused: 'credential_not_permitted' | 'insufficient_scope' | 'resource_not_found' | 'policy_denied'
  /** The check that decided, for the audit record. */
  readonly check: Check
}

export type Authorization = { readonly granted: true; readonly authority: Scope } | Denial

/** API keys only read, since they are bearer secrets that live for weeks. */
const mayUse = ({ kind }: Principal, { scope, kinds }: Demand): boolean =>
  (kind !== 'api_key' || scope.endsWith(':read')) && (kinds === undefined || kinds.includes(kind))

const owns = (principal: Principal, owner: Demand['owner']): boolean =>
  owner === undefined || (owner.subject === principal.subject && owner.client === principal.client)

/** Whether both may be one person: who holds a client's secret acts as the client, and through it as a user. */
const mayBeSame = ({ subject, client, kind }: Principal, other: Caller): boolean => {
  const oneIsClient = kind === 'workload' || other.workload === true
  return subject === other.subject || (oneIsClient && client === other.client)
}

/** In the order of the contract: credential and scopes reveal nothing of the resource; then visibility (404); then policy. */
export const authorize = (principal: Principal, demand: Demand): Authorization => {
  if (!mayUse(principal, demand)) return { refused: 'credential_not_permitted', check: 'credential' }
  if (!principal.scopes.has(demand.scope)) return { refused: 'insufficient_scope', check: 'scope' }
  if (demand.tenant !== undefined && demand.tenant !== principal.tenant) {
    return { refused: 'resource_not_found', check: 'tenant' }
  }
  if (!owns(principal, demand.owner)) return { refused: 'resource_not_found', check: 'ownership' }
  if (demand.otherThan && mayBeSame(principal, demand.otherThan)) return { refused: 'policy_denied', check: 'policy' }
  return { granted: true, authority: demand.scope }
}
