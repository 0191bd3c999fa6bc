import { z } from 'zod'
import type { PaymentRow } from '../../../projections/payments/projection.ts'
import { idSchema, type PaymentId } from '../../../streams/ids.ts'
import { paymentEntity } from '../../commands/entities.ts'
import type { CreationResult } from '../../commands/idempotency/creation.ts'
import { idOfKey } from '../../commands/idempotency/record.ts'
import { type NewRefund, refund, replayRefund } from '../../commands/refunds.ts'
import { settle } from '../../commands/settlements.ts'
import { Unavailable } from '../../ports.ts'
import { idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { paymentSchema, renderPayment } from './payments.ts'
import { replyToCommand, replyToCreation, textsFor } from './commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../route.ts'
import type { AnyLogCall, Call, LogCall } from '../services.ts'
import { amountSchema, changedResource, emptyBody, textSchema } from './commonSchemas.ts'

const byId = z.object({ id: idSchema('pay') })
const PATH = '/payments'
const common = { tag: 'Payments', method: 'POST', params: byId } as const
const changed = changedResource(paymentSchema, 'The payment.')

type ById = Call<{ id: PaymentId }, unknown, unknown>

/** Reads the reference that the reply will show before anything is done, so a 503 of Postgres has no effect. */
const readReferenceFirst = async (call: ById): Promise<void> => {
  const { aggregates } = call.ledger
  const { id } = call.params
  const { tenant } = call.principal
  const cached = aggregates.cached(paymentEntity, id)?.row
  const row = cached?.tenant_id === tenant ? cached : (await aggregates.loadOwn(paymentEntity, id, tenant))?.row
  if (row !== undefined) await textsFor(call, [row])
}

/** As `readReferenceFirst`; but once the settlement has ended, a 503, which promises no effect, would be wrong. */
const readReferenceUnlessSettled = async (call: ById): Promise<void> => {
  try {
    await readReferenceFirst(call)
  } catch (error) {
    const isPending = async () =>
      (await call.ledger.aggregates.load(paymentEntity, call.params.id)).row?.state === 'pending'
    if (!(error instanceof Unavailable) || (await isPending())) throw error
  }
}

const settlePayment = route({
  ...common,
  path: '/payments/{id}:settle',
  operationId: 'settle_payment',
  endsWork: true,
  summary: 'Settle a deferred payment; a repetition has no further effect',
  scope: 'payments:settle',
  kinds: ['workload'],
  body: emptyBody,
  responses: { 200: changed },
  errors: ['payment_state_conflict'],
  handler: async call => {
    await readReferenceUnlessSettled(call)
    const settled = await settle(call.ledger, call.params.id, { type: 'SettlePayment' }, call.context)
    return replyToCommand(call, settled, renderPayment)
  },
})

const FAILURE_CODE = /^[a-z][a-z0-9_]{0,63}$/

const failPayment = route({
  ...common,
  path: '/payments/{id}:fail',
  operationId: 'fail_payment',
  endsWork: true,
  summary: 'Fail a deferred payment; its amount is due on the invoice again',
  scope: 'payments:settle',
  kinds: ['workload'],
  body: z
    .strictObject({
      code: z
        .string()
        .regex(FAILURE_CODE, 'Must be a code of at most 64 characters a-z, 0-9 and _, such as card_declined.')
        .default('declined')
        .meta({ description: 'The reason of the failure, as a code of the system that settles payments.' }),
    })
    .default({ code: 'declined' }),
  responses: { 200: changed },
  errors: ['payment_state_conflict'],
  handler: async call => {
    await readReferenceUnlessSettled(call)
    const command = { type: 'FailPayment' as const, code: call.body.code }
    return replyToCommand(call, await settle(call.ledger, call.params.id, command, call.context), renderPayment)
  },
})

/** Instead of an amount: all that is left. An absent amount is refused, so a forgotten one gives nothing back. */
const REMAINING = 'remaining'
const refundedAmount = z
  .union([amountSchema, z.literal(REMAINING)], {
    error: ({ input }) =>
      input === undefined ? undefined : `Must be an amount in minor units of the currency, or "${REMAINING}".`,
  })
  .meta({ description: `The amount to refund; "${REMAINING}" for the whole amount that is not yet refunded.` })

const newRefund = z.strictObject({ amount: refundedAmount, reason: textSchema })

const newRefundOf = (call: LogCall<{ id: PaymentId }, unknown, z.output<typeof newRefund>, 'required'>): NewRefund => {
  const { body, params, idempotency } = call
  const amount = body.amount === REMAINING ? null : body.amount
  return {
    id: idOfKey('rfd', idempotency),
    payment_id: params.id,
    amount: amount === null ? null : BigInt(amount),
    reason: body.reason,
    idempotencyRecord: idempotencyRecordOf(idempotency, call, { ...params, amount, reason: body.reason }),
  }
}

/** Not 201 with a Location: the reply shows a payment that was there before. */
const refundReply = async (call: AnyLogCall, outcome: CreationResult<PaymentRow>): Promise<Reply> => {
  const reply = await replyToCreation(call, outcome, PATH, renderPayment)
  const { Location: _, ...headers } = reply.headers ?? {}
  return { ...reply, status: 200, headers }
}

const refundPayment = route({
  ...common,
  path: '/payments/{id}:refund',
  operationId: 'refund_payment',
  audited: 'path',
  summary: 'Refund a payment in part or in full, exactly once per Idempotency-Key',
  scope: 'payments:refund',
  body: newRefund,
  idempotencyKey: 'required',
  responses: { 200: { ...changed, headers: [...changed.headers, 'Idempotent-Replayed'] } },
  errors: ['payment_state_conflict', 'too_many_changes'],
  handler: async call => {
    await readReferenceFirst(call)
    return refundReply(call, await refund(call.ledger, newRefundOf(call), call.context))
  },
  replay: async call => {
    const replayed = await replayRefund(call.ledger, newRefundOf(call), call.context)
    return replayed && refundReply(call, replayed)
  },
})

export const paymentActionRoutes: readonly AnyRoute[] = [settlePayment, failPayment, refundPayment]
