import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import type { RateLimit } from '../ports.ts'

/** Every scope that an operation can ask for; the contract names each beside its route. */
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
] as const

export type Scope = (typeof SCOPES)[number]

export type PrincipalKind = 'user' | 'workload' | 'api_key'

/** Who asks, as the credential alone says it. Nothing of a body, a query or another header ever gets in here. */
export type Principal = {
  readonly tenant: string
  readonly subject: string
  /** The OAuth client, or the id of the API key, through which the subject speaks. */
  readonly client: string
  readonly scopes: ReadonlySet<string>
  readonly kind: PrincipalKind
  /** Of an API key: how much it may be used, whatever its holder may beside. */
  readonly quota?: RateLimit
}

/** The only shape that a tenant's name has, in tokens, in keys of rate limits and in rows; the house's own is nobody's. */
export const TENANT_PATTERN = new RegExp(`^(?!${SYSTEM_TENANT}$)[a-z0-9][a-z0-9-]{0,62}$`)

const known: ReadonlySet<string> = new Set(SCOPES)

export const isScope = (text: string): text is Scope => known.has(text)

export type ReadScope = Extract<Scope, `${string}:read`>

const isReadScope = (text: string): text is ReadScope => isScope(text) && text.endsWith(':read')

/** All that an API key can be given. */
export const READ_SCOPES: readonly ReadScope[] = SCOPES.filter(isReadScope)
