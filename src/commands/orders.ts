import type { OrderRow } from '../../projections/orders/projection.ts'
import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import type { CreateOrder } from '../../streams/order/index.ts'
import { randomId } from '../lib/identifiers.ts'
import type { Context, Ledger } from './commandHandler.ts'
import { orderEntity } from './entities.ts'
import { create, type CreationResult, replay } from './idempotency/creation.ts'
import { idOfKey, type ScopedKey } from './idempotency/record.ts'
import type { PersonalReference } from './payments.ts'

export type NewOrder = {
  readonly key: ScopedKey | undefined
  readonly idempotencyRecord: IdempotencyRecord | null
  readonly terms: Omit<CreateOrder, 'type' | 'customer_reference' | 'claim'>
  /** Stores the customer reference, whose token the order has; undefined without one. */
  readonly storeReference: PersonalReference['store'] | undefined
}

/** Creates the order, or finds the one that the same key created. */
export const createOrderOnce = async (
  { ledger, context }: { readonly ledger: Ledger; readonly context: Context },
  { key, idempotencyRecord, terms, storeReference }: NewOrder,
): Promise<CreationResult<OrderRow>> => {
  const id = key ? idOfKey('ord', key) : randomId('ord', ledger.world)
  const createWith = (customer_reference: string | null) => {
    const command = { type: 'CreateOrder' as const, customer_reference, ...terms, claim: idempotencyRecord }
    return create(ledger, orderEntity, id, { command, context, idempotencyRecord })
  }
  if (storeReference === undefined) return createWith(null)
  const answerOfKey = async (): Promise<CreationResult<OrderRow> | undefined> =>
    idempotencyRecord === null ? undefined : replay(ledger, orderEntity, id, idempotencyRecord)
  const stored = await storeReference(answerOfKey)
  return 'answer' in stored ? stored.answer : createWith(stored.token)
}
