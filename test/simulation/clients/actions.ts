import type { Action } from './actor.ts'
import { approve, changeOrder, createOrder, endOrder, raiseInvoice, voidInvoice } from './orders.ts'
import {
  audit,
  cancelExport,
  createExport,
  issueKey,
  list,
  read,
  readKey,
  readManifest,
  subscribe,
  tendSubscription,
} from './otherRequests.ts'
import { pay, refund, settle, settleEarly } from './payments.ts'

type Weighted = Readonly<Record<string, readonly [weight: number, action: Action]>>
const subscriberActions: Weighted = { subscribe: [4, subscribe], 'tend subscription': [4, tendSubscription] }

/** By how often each is done. */
export const actionsWith = (idOfNewest: (tenant: string) => string | undefined, hasSubscribers: boolean): Weighted => ({
  'create order': [10, createOrder],
  'change order': [4, changeOrder],
  'end order': [2, endOrder],
  'raise invoice': [10, raiseInvoice],
  approve: [10, approve],
  'void invoice': [2, voidInvoice],
  pay: [24, pay],
  settle: [7, settle],
  'settle early': [6, settleEarly(idOfNewest)],
  refund: [8, refund],
  read: [5, read],
  list: [5, list],
  'read key': [2, readKey],
  'create export': [4, createExport],
  'cancel export': [1, cancelExport],
  'issue key': [2, issueKey],
  audit: [2, audit],
  'read manifest': [2, readManifest],
  ...(hasSubscribers ? subscriberActions : {}),
})
