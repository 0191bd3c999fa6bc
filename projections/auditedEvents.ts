import type { AccessCheck, AccessEvent } from '../streams/access/index.ts'
import type { ApiKeyEvent } from '../streams/apiKey/index.ts'
import type { AnyEvent } from '../streams/decider.ts'
import type { Recorded } from '../streams/envelope.ts'
import type { InvoiceEvent } from '../streams/invoice/index.ts'
import type { OperationEvent } from '../streams/operation/index.ts'
import type { PaymentEvent } from '../streams/payment/index.ts'
import type { PeriodEvent } from '../streams/period/index.ts'
import type { SubscriptionEvent } from '../streams/subscription/index.ts'
import type { TenantEvent } from '../streams/tenant/index.ts'

/**
 * The events that are audit records. An event is the record of the grant that led to it, so one append has both
 * the grant and its effect. Decisions without an event of their own, such as denials, are recorded in streams of
 * category `access`, for the operations whose route has the member `audited` (src/http/route.ts).
 */

/** The part of an audit record that follows from its event. */
export type Verdict = {
  readonly decision: 'granted' | 'denied'
  readonly operation: string
  /** The check that refused, or the last one that passed. */
  readonly check_name: AccessCheck
  readonly code: string | null
  readonly resource: string | null
  /** The number of decisions that the record stands for; 1 when absent. */
  readonly count?: number
  /** The reason that the caller gave; null when absent. */
  readonly reason?: string | null
}
type VerdictMap<E extends AnyEvent> = {
  readonly [T in E['type']]: 'not_audited' | ((recorded: Recorded<Extract<E, { type: T }>>) => Verdict | undefined)
}

const grant = (operation: string, check_name: AccessCheck, resource: string | null): Verdict => ({
  decision: 'granted',
  operation,
  check_name,
  code: null,
  resource,
})
const granted =
  (operation: string, check_name: AccessCheck = 'state') =>
  ({ id }: { readonly id: string }): Verdict =>
    grant(operation, check_name, id)

const withReason =
  <E extends AnyEvent & { readonly data: { readonly reason?: string | null | undefined } }>(
    verdict: (recorded: { readonly id: string }) => Verdict,
  ) =>
  (recorded: Recorded<E>): Verdict => ({ ...verdict(recorded), reason: recorded.event.data.reason ?? null })

const refusedByState = (operation: string, resource: string, code: string): Verdict => ({
  decision: 'denied',
  operation,
  check_name: 'state',
  code,
  resource,
})

/**
 * In a payment's stream revision 0 is the request, revision 1 its outcome; later events were caused by other requests.
 */
const REVISION_OF_OUTCOME = 1n
const grantedPayment = (recorded: Recorded<AnyEvent>): Verdict | undefined =>
  recorded.revision === REVISION_OF_OUTCOME ? granted('create_payment')(recorded) : undefined

const ON_ACCESS: VerdictMap<AccessEvent> = {
  AccessGranted: ({ event: { data } }) => {
    const { operation, resource, reason = null } = data
    return { ...grant(operation, 'policy', resource), reason }
  },
  AccessDenied: ({ event: { data } }) => {
    const { check, count = 1, ...denial } = data
    return { ...denial, decision: 'denied', check_name: check, count }
  },
}
const ON_INVOICE: VerdictMap<InvoiceEvent> = {
  InvoiceRaised: 'not_audited',
  InvoiceApproved: withReason(granted('approve_invoice', 'policy')),
  InvoiceVoided: withReason(granted('void_invoice')),
  PaymentReserved: 'not_audited',
  PaymentRefused: 'not_audited',
  PaymentReleased: 'not_audited',
  PaymentApplied: 'not_audited',
  RefundApplied: 'not_audited',
  InvoicePaid: 'not_audited',
}
const ON_PAYMENT: VerdictMap<PaymentEvent> = {
  PaymentInitiated: 'not_audited',
  PaymentAccepted: grantedPayment,
  PaymentSucceeded: grantedPayment,
  PaymentFailed: ({ id, revision, event: { data } }) =>
    revision === REVISION_OF_OUTCOME ? refusedByState('create_payment', id, data.code) : undefined,
  PaymentRefunded: granted('refund_payment'),
  RefundRefused: ({ id, event: { data } }) => refusedByState('refund_payment', id, data.code),
}
const ON_OPERATION: VerdictMap<OperationEvent> = {
  ExportRequested: granted('create_export', 'policy'),
  OperationStarted: 'not_audited',
  OperationAttemptFailed: 'not_audited',
  ExportCompleted: 'not_audited',
  OperationFailed: 'not_audited',
  OperationCancelled: 'not_audited',
  OperationExpired: 'not_audited',
}
const ON_API_KEY: VerdictMap<ApiKeyEvent> = {
  ApiKeyIssued: granted('issue_api_key', 'scope'),
  ApiKeyRotated: granted('rotate_api_key'),
  ApiKeyRevoked: granted('revoke_api_key'),
}
type ByOperator = { readonly reason: string; readonly resource?: string }
const byOperator = (operation: string, { reason, resource }: ByOperator): Verdict => ({
  ...grant(operation, 'policy', resource ?? null),
  reason,
})
const byOperatorOnScope = (
  operation: string,
  { reason, subject, scope }: Record<'reason' | 'subject' | 'scope', string>,
) => byOperator(operation, { reason, resource: `${subject} ${scope}` })
const ON_TENANT: VerdictMap<TenantEvent> = {
  TenantSuspended: ({ event: { data } }) => byOperator('suspend_tenant', data),
  TenantReinstated: ({ event: { data } }) => byOperator('reinstate_tenant', data),
  ScopeRevoked: ({ event: { data } }) => byOperatorOnScope('revoke_scope', data),
  ScopeRestored: ({ event: { data } }) => byOperatorOnScope('restore_scope', data),
}
const ON_PERIOD: VerdictMap<PeriodEvent> = {
  PeriodClosed: ({ event: { data } }) => byOperator('close_period', { reason: data.reason, resource: data.through }),
}
/** By reason of SubscriptionStopped, which no caller asks for: a permission granted earlier was found to be lost. */
const CAUSES_OF_STOP: Readonly<Record<string, Pick<Verdict, 'check_name' | 'code'>>> = {
  scope_revoked: { check_name: 'scope', code: 'insufficient_scope' },
}
const ON_SUBSCRIPTION: VerdictMap<SubscriptionEvent> = {
  SubscriptionCreated: granted('create_subscription', 'scope'),
  SubscriptionPaused: granted('pause_subscription'),
  SubscriptionResumed: granted('resume_subscription', 'policy'),
  SubscriptionReplayed: granted('replay_subscription', 'policy'),
  SubscriptionReplayCompleted: 'not_audited',
  SubscriptionStopped: ({ id, event: { data } }) => ({
    decision: 'denied',
    operation: 'deliver_subscription',
    check_name: 'policy',
    code: 'policy_denied',
    ...CAUSES_OF_STOP[data.reason],
    resource: id,
  }),
  SubscriptionDeleted: granted('delete_subscription'),
}
const VERDICTS: Readonly<Record<string, unknown>> = {
  ...ON_ACCESS,
  ...ON_INVOICE,
  ...ON_PAYMENT,
  ...ON_OPERATION,
  ...ON_API_KEY,
  ...ON_TENANT,
  ...ON_PERIOD,
  ...ON_SUBSCRIPTION,
}

export const verdictOf = (recorded: Recorded<AnyEvent>): Verdict | undefined => {
  const verdict = VERDICTS[recorded.event.type]
  return typeof verdict === 'function' ? (verdict as (recorded: Recorded<AnyEvent>) => Verdict)(recorded) : undefined
}
