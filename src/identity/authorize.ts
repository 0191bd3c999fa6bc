import type { Principal, PrincipalKind, Scope } from './principal.ts'

/** What is asked for. Members that are left out are not part of the decision. */
export type Demand = {
  readonly scope: Scope
  /** The kinds of credential that the operation takes; all when absent. */
  readonly kinds?: readonly PrincipalKind[]
  /** The tenant that the resource belongs to. */
  readonly tenant?: string
  /** Whose the thing is, where only the same caller may see it. */
  readonly owner?: { readonly subject: string; readonly client: string }
  /** Four eyes: the subject who must not be the one to decide. */
  readonly otherThan?: string
}

export type Check = 'credential' | 'scope' | 'tenant' | 'ownership' | 'state' | 'policy'

export type Denial = {
  readonly refused: 'credential_not_permitted' | 'insufficient_scope' | 'resource_not_found' | 'policy_denied'
  /** The check that decided, for the audit record. */
  readonly check: Check
}

export type Authorization = { readonly granted: true; readonly authority: Scope } | Denial

/** An API key is a bearer secret that lives for weeks: it reads, and nothing else. */
const mayUse = ({ kind }: Principal, { scope, kinds }: Demand): boolean =>
  (kind !== 'api_key' || scope.endsWith(':read')) && (kinds === undefined || kinds.includes(kind))

const owns = (principal: Principal, owner: Demand['owner']): boolean =>
  owner === undefined || (owner.subject === principal.subject && owner.client === principal.client)

/**
 * The one place where it is decided whether a caller may do something. The order is the contract's: what the caller
 * could never do with this credential comes first and gives nothing away about the resource; then what is not the
 * caller's to see does not exist; only inside that is there a rule to be told about.
 */
export const authorize = (principal: Principal, demand: Demand): Authorization => {
  if (!mayUse(principal, demand)) return { refused: 'credential_not_permitted', check: 'credential' }
  if (!principal.scopes.has(demand.scope)) return { refused: 'insufficient_scope', check: 'scope' }
  if (demand.tenant !== undefined && demand.tenant !== principal.tenant) {
    return { refused: 'resource_not_found', check: 'tenant' }
  }
  if (!owns(principal, demand.owner)) return { refused: 'resource_not_found', check: 'ownership' }
  if (demand.otherThan === principal.subject) return { refused: 'policy_denied', check: 'policy' }
  return { granted: true, authority: demand.scope }
}
