import { DEFAULT_IDEMPOTENCY_RETENTION_MS } from '../../settings/retention.ts'
import type { Scope } from '../../identity/principal.ts'
import { DEFAULT_RATE_LIMITS, type RatePolicy } from '../../settings/limits.ts'
import { BODY_MAX_BYTES } from '../request/body.ts'
import { DEPTH_MAX, MEMBERS_MAX } from '../request/json.ts'
import { PROBLEMS, type ErrorCode, retryOf } from '../problems/problemCatalogue.ts'
import { HEADERS_MAX_BYTES, URL_MAX_CHARS } from '../request/framing.ts'
import { DAY_MS } from '../../lib/time.ts'

/** The parts of openapi.json that belong to no operation: scopes, tags, limits, and the table of all error codes. */

export const SCOPE_DESCRIPTIONS = {
  'orders:read': 'Read orders and their history.',
  'orders:write': 'Create, change, cancel and delete orders.',
  'invoices:read': 'Read invoices and their history.',
  'invoices:write': 'Raise and void invoices.',
  'invoice:approve': 'Approve invoices.',
  'payments:read': 'Read payments, their history and the outcomes of idempotency keys.',
  'payments:write': 'Create payments.',
  'payments:settle': 'Settle or fail deferred payments.',
  'payments:refund': 'Refund payments.',
  'exports:read': 'Read exports and their operations; a file needs the read scope of its resource too.',
  'exports:write': 'Create and cancel exports; creating one needs the read scope of its resource too.',
  'events:read': 'Read the published facts of the resources whose read scope is also granted.',
  'events:subscribe': 'Create and manage subscriptions, to facts of the resources whose read scope is also granted.',
  'ledger:read': 'Read accounts and journal entries.',
  'audit:read': 'Read audit records.',
  'keys:manage': 'Issue, rotate and revoke API keys.',
  'projections:operate': 'See and rebuild read models, as an operator of the installation.',
  'audit:installation': 'See the audit records of operators about the installation.',
} as const satisfies Readonly<Record<Scope, string>>

export const TAGS = [
  { name: 'Orders', description: 'Orders, from which invoices are raised.' },
  { name: 'Invoices', description: 'Invoices, which are approved and paid.' },
  { name: 'Payments', description: 'Payments of invoices, each made exactly once per Idempotency-Key.' },
  { name: 'History', description: 'Every change of a resource, with its author and time.' },
  { name: 'Exports', description: 'Files of a resource’s list.' },
  { name: 'Operations', description: 'Work that continues after its request was accepted.' },
  { name: 'API keys', description: 'Credentials of integrations that only read.' },
  { name: 'Events', description: 'The published facts over HTTP.' },
  { name: 'Subscriptions', description: 'The delivery of facts to a Kafka topic of the subscriber.' },
  { name: 'Books', description: 'The double-entry accounts that are made from invoices and payments.' },
  { name: 'Audit', description: 'The decisions on sensitive operations.' },
  { name: 'Projections', description: 'The read models of the installation, for its operators.' },
  { name: 'Health', description: 'The state of the process, for orchestrators.' },
  { name: 'Identity', description: 'Discovery of the issuer of access tokens.' },
  { name: 'Contract', description: 'The published contract: this document, its schemas and its error codes.' },
] as const

/** Limits of every request, and how long keys are remembered. */
const limits = {
  body_bytes_max: BODY_MAX_BYTES,
  body_depth_max: DEPTH_MAX,
  body_members_max: MEMBERS_MAX,
  headers_bytes_max: HEADERS_MAX_BYTES,
  url_chars_max: URL_MAX_CHARS,
  idempotency_retention_days: DEFAULT_IDEMPOTENCY_RETENTION_MS / DAY_MS,
}

/** The default limits of each caller by rate class; an installation may set others. */
const rateLimits = Object.fromEntries(
  (Object.keys(DEFAULT_RATE_LIMITS) as RatePolicy[]).map(policy => {
    const { requests, windowSeconds } = DEFAULT_RATE_LIMITS[policy]
    return [policy, { requests, window_seconds: windowSeconds }]
  }),
)

const problems = Object.fromEntries(
  (Object.keys(PROBLEMS) as ErrorCode[]).map(code => {
    const { status, category, title } = PROBLEMS[code]
    return [code, { status, category, title, retry: retryOf(code) }]
  }),
)

export const contractTerms = { 'x-limits': limits, 'x-rate-limits': rateLimits, 'x-problems': problems } as const
