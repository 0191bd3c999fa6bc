import type { Action } from './actor.ts'
import { approveInvoice, changeOrder, createOrder, cancelOrDeleteOrder, raiseInvoice, voidInvoice } from './orders.ts'
import {
  readAuditRecords,
  cancelExport,
  createExport,
  issueApiKey,
  listResources,
  readResource,
  readIdempotencyKey,
  readManifest,
  createSubscription,
  changeSubscription,
} from './otherRequests.ts'
import { pay, refund, settle, settleEarly } from './payments.ts'

/** The actions of clients that a run may have. An action is drawn with a probability proportional to its weight. */
type WeightedActions = Readonly<Record<string, readonly [weight: number, action: Action]>>
const subscriberActions: WeightedActions = {
  subscribe: [4, createSubscription],
  'change subscription': [4, changeSubscription],
}

/** `hasSubscribers`: whether some clients have subscriptions. */
export const actionsWith = (
  newestPaymentId: (tenant: string) => string | undefined,
  hasSubscribers: boolean,
): WeightedActions => ({
  'create order': [10, createOrder],
  'change order': [4, changeOrder],
  'end order': [2, cancelOrDeleteOrder],
  'raise invoice': [10, raiseInvoice],
  approve: [10, approveInvoice],
  'void invoice': [2, voidInvoice],
  pay: [24, pay],
  settle: [7, settle],
  'settle early': [6, settleEarly(newestPaymentId)],
  refund: [8, refund],
  read: [5, readResource],
  list: [5, listResources],
  'read key': [2, readIdempotencyKey],
  'create export': [4, createExport],
  'cancel export': [1, cancelExport],
  'issue key': [2, issueApiKey],
  audit: [2, readAuditRecords],
  'read manifest': [2, readManifest],
  ...(hasSubscribers ? subscriberActions : {}),
})
