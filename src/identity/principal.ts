import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import type { RateLimit } from '../ports.ts'

/** Every scope that an operation can require. */
export const SCOPES = [
  'orders:read',
  'orders:write',
  'invoices:read',
  'invoices:write',
  'invoice:approve',
  'payments:read',
  'payments:write',
  'payments:settle',
  'payments:refund',
  'exports:read',
  'exports:write',
  'events:read',
  'events:subscribe',
  'ledger:read',
  'audit:read',
  'keys:manage',
  'projections:operate',
  'audit:installation',
] as const

export type Scope = (typeof SCOPES)[number]

/** The tenant of the operators of a development service, where no setting names one. */
export const DEVELOPMENT_OPERATORS = 'operators'

export type PrincipalKind = 'user' | 'workload' | 'api_key'

/** The caller, from its credential alone, never from a body, a query or another header. */
export type Principal = {
  readonly tenant: string
  readonly subject: string
  /** The OAuth client of the subject, or the id of its API key. */
  readonly client: string
  readonly scopes: ReadonlySet<string>
  readonly kind: PrincipalKind
  /** The quota of an API key, in addition to the other limits. */
  readonly quota?: RateLimit
}

/** The identity by which limits and capacity are divided among callers. */
export const callerOf = ({ tenant, subject, client }: Pick<Principal, 'tenant' | 'subject' | 'client'>): string =>
  JSON.stringify([tenant, subject, client])

/** The names of tenants in tokens, rate limits and rows; the system tenant is excluded. */
export const TENANT_PATTERN = new RegExp(`^(?!${SYSTEM_TENANT}$)[a-z0-9][a-z0-9-]{0,62}$`)

const scopes: ReadonlySet<string> = new Set(SCOPES)

export const isScope = (text: string): text is Scope => scopes.has(text)

export type ReadScope = Extract<Scope, `${string}:read`>

const isReadScope = (text: string): text is ReadScope => isScope(text) && text.endsWith(':read')

export const READ_SCOPES: readonly ReadScope[] = SCOPES.filter(isReadScope)
