import type { Action } from './actor.ts'
import { approveInvoice, changeOrder, createOrder, cancelOrDeleteOrder, raiseInvoice, voidInvoice } from './orders.ts'
import {
  readAuditRecords,
  endExport,
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

/** The actions of clients: an action is drawn with a probability proportional to its weight. */

const WEIGHTS = {
  'create order': 10,
  'change order': 4,
  'end order': 2,
  'raise invoice': 10,
  approve: 10,
  'void invoice': 2,
  pay: 24,
  settle: 7,
  'settle early': 6,
  refund: 8,
  read: 5,
  list: 5,
  'read key': 2,
  'create export': 4,
  'end export': 1,
  'issue key': 2,
  audit: 2,
  'read manifest': 2,
} as const
const SUBSCRIBER_WEIGHTS = { subscribe: 4, 'change subscription': 4 } as const

type ActionName = keyof typeof WEIGHTS | keyof typeof SUBSCRIBER_WEIGHTS

/** The weights from which a plan is drawn. `hasSubscribers`: whether some clients of the run have subscriptions. */
export const actionWeights = (hasSubscribers: boolean): Readonly<Record<string, number>> => ({
  ...WEIGHTS,
  ...(hasSubscribers ? SUBSCRIBER_WEIGHTS : {}),
})

/** The actions by their names, those of subscribers included, since a recorded plan may have them. */
export const runnableActions = (
  newestPaymentId: (tenant: string) => string | undefined,
): ReadonlyMap<string, Action> => {
  const actions: Readonly<Record<ActionName, Action>> = {
    'create order': createOrder,
    'change order': changeOrder,
    'end order': cancelOrDeleteOrder,
    'raise invoice': raiseInvoice,
    approve: approveInvoice,
    'void invoice': voidInvoice,
    pay,
    settle,
    'settle early': settleEarly(newestPaymentId),
    refund,
    read: readResource,
    list: listResources,
    'read key': readIdempotencyKey,
    'create export': createExport,
    'end export': endExport,
    'issue key': issueApiKey,
    audit: readAuditRecords,
    'read manifest': readManifest,
    subscribe: createSubscription,
    'change subscription': changeSubscription,
  }
  return new Map(Object.entries(actions))
}
