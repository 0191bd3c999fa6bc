import type { FactType } from '../../streams/facts.ts'
import { aggregates, type Category } from '../../streams/index.ts'
import type { ExportResource } from '../../streams/operation/index.ts'
import type { Principal, ReadScope } from './principal.ts'

/** Required wherever data of the resource leave the service, in addition to the scope of the operation. */
export const SCOPE_OF = {
  orders: 'orders:read',
  invoices: 'invoices:read',
  payments: 'payments:read',
  journal_entries: 'ledger:read',
  operations: 'exports:read',
} as const satisfies Readonly<Record<ExportResource | 'operations', ReadScope>>
export type Resource = keyof typeof SCOPE_OF

/** The resource that each fact is about. Manifests belong to the system tenant, so no caller can have a scope for them. */
export const RESOURCE_OF_FACT = {
  'order.created': 'orders',
  'order.cancelled': 'orders',
  'invoice.approved': 'invoices',
  'invoice.paid': 'invoices',
  'invoice.voided': 'invoices',
  'payment.succeeded': 'payments',
  'payment.failed': 'payments',
  'payment.refunded': 'payments',
  'export.completed': 'operations',
  'ledger.manifest': undefined,
} as const satisfies Readonly<Record<FactType, Resource | undefined>>
export type TenantFactType = Exclude<FactType, 'ledger.manifest'>

/** The types of the facts that tenants have. */
export const TENANT_FACT_TYPES = (Object.keys(RESOURCE_OF_FACT) as FactType[]).filter(
  (type): type is TenantFactType => RESOURCE_OF_FACT[type] !== undefined,
)

/** The scopes, each once, that the facts of these types require. */
export const scopesOfFacts = (types: readonly string[]): readonly ReadScope[] => [
  ...new Set(TENANT_FACT_TYPES.filter(type => types.includes(type)).map(type => SCOPE_OF[RESOURCE_OF_FACT[type]])),
]

export const readableFactTypes = ({ scopes }: Pick<Principal, 'scopes'>): readonly TenantFactType[] =>
  TENANT_FACT_TYPES.filter(type => scopes.has(SCOPE_OF[RESOURCE_OF_FACT[type]]))

/** The scopes that the facts of a category of streams require: those of the topic of this category. */
export const scopesOfCategory = (category: Category): readonly ReadScope[] =>
  scopesOfFacts(Object.values(aggregates[category].facts).flatMap(fact => (fact === 'internal' ? [] : [fact.type])))
