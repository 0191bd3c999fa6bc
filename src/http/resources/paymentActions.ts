import { z } from 'zod'
import { idSchema, type PaymentId } from '../../../streams/ids.ts'
import { paymentEntity, refundEntity } from '../../commands/entities.ts'
import { idOfKey } from '../../commands/identifiers.ts'
import { refund } from '../../commands/refunds.ts'
import { settle } from '../../commands/settlements.ts'
import { Unavailable } from '../../ports.ts'
import { idempotencyRecordOf } from '../request/idempotencyKey.ts'
import { paymentSchema, renderPayment } from './payments.ts'
import { replyToCommand, replyToCreation, textsFor } from './commonReplies.ts'
import { type AnyRoute, type Call, route } from '../route.ts'
import { amountSchema, textSchema } from './commonSchemas.ts'

/** The endpoints that settle, fail and refund existing payments. */

const byId = z.object({ id: idSchema('pay') })
const common = { tag: 'Payments', method: 'POST', rateClass: 'default', params: byId } as const
const changed = {
  description: 'The payment.',
  schema: paymentSchema,
  headers: ['ETag', 'Ledger-Position'],
} as const

/**
 * Reads the reference that the reply will show, before anything is done: while Postgres does not answer, the request is
 * refused without an effect. One that was executed before goes on, because a 503, which promises no effect, would be
 * wrong.
 */
const readReferenceFirst = async (
  call: Call<{ id: PaymentId }, unknown, unknown>,
  wasExecuted: () => Promise<boolean>,
): Promise<void> => {
  const { aggregates } = call.ledger
  const { id } = call.params
  const { tenant } = call.principal
  const cached = aggregates.cached(paymentEntity, id)?.row
  const row = cached?.tenant_id === tenant ? cached : (await aggregates.loadOwn(paymentEntity, id, tenant))?.row
  // The command refuses a payment that the caller may not see.
  if (row === undefined) return
  try {
    await textsFor(call, [row])
  } catch (error) {
    if (!(error instanceof Unavailable) || !(await wasExecuted())) throw error
  }
}

/** Whether a settlement has ended, by this request or another one. */
const isSettled = async ({ ledger, params }: Call<{ id: PaymentId }, unknown, unknown>): Promise<boolean> =>
  (await ledger.aggregates.load(paymentEntity, params.id)).row?.state !== 'pending'

const settlePayment = route({
  ...common,
  path: '/payments/{id}:settle',
  operationId: 'settle_payment',
  endsWork: true,
  summary: 'Settle a deferred payment; a repetition has no further effect',
  scope: 'payments:settle',
  kinds: ['workload'],
  body: z.strictObject({}).default({}),
  responses: { 200: changed },
  errors: ['payment_state_conflict'],
  handler: async call => {
    await readReferenceFirst(call, () => isSettled(call))
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
        .regex(FAILURE_CODE)
        .default('declined')
        .meta({ description: 'The reason of the failure, as a code of the system that settles payments.' }),
    })
    .default({ code: 'declined' }),
  responses: { 200: changed },
  errors: ['payment_state_conflict'],
  handler: async call => {
    await readReferenceFirst(call, () => isSettled(call))
    const command = { type: 'FailPayment' as const, code: call.body.code }
    return replyToCommand(call, await settle(call.ledger, call.params.id, command, call.context), renderPayment)
  },
})

/** In place of an amount: all that is left. An absent amount is refused, so that a forgotten one gives nothing back. */
const REMAINING = 'remaining'
const refundedAmount = z
  .union([amountSchema, z.literal(REMAINING)], { error: `Minor units of the currency, or "${REMAINING}".` })
  .meta({ description: `The amount to refund; "${REMAINING}" for the whole amount that is not yet refunded.` })

const refundPayment = route({
  ...common,
  path: '/payments/{id}:refund',
  operationId: 'refund_payment',
  audited: 'path',
  summary: 'Refund a payment in part or in full, exactly once per Idempotency-Key',
  scope: 'payments:refund',
  body: z.strictObject({
    amount: refundedAmount,
    reason: textSchema,
  }),
  idempotencyKey: 'required',
  responses: { 200: { ...changed, headers: [...changed.headers, 'Idempotent-Replayed'] } },
  errors: ['payment_state_conflict', 'too_many_changes'],
  handler: async call => {
    const { body, params, ledger, context, idempotency } = call
    const amount = body.amount === REMAINING ? null : body.amount
    const idempotencyRecord = idempotencyRecordOf(idempotency, call, { ...params, amount, reason: body.reason })
    const id = idOfKey('rfd', idempotency)
    const isInitiated = async () => (await ledger.aggregates.load(refundEntity, id)).revision !== 'no_stream'
    const ready = () => readReferenceFirst(call, isInitiated)
    const request = { id, payment_id: params.id, reason: body.reason, idempotencyRecord, ready }
    const refunded = await refund(ledger, { ...request, amount: amount === null ? null : BigInt(amount) }, context)
    const { status: _, headers, ...rest } = await replyToCreation(call, refunded, '/payments', renderPayment)
    const { Location: __, ...kept } = headers ?? {}
    return { status: 200, headers: kept, ...rest }
  },
})

export const paymentActionRoutes: readonly AnyRoute[] = [settlePayment, failPayment, refundPayment]
