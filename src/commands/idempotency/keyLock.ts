import { streamOf } from '../../../streams/aggregate.ts'
import type { PaymentId } from '../../../streams/ids.ts'
import type { Ledger } from '../commandHandler.ts'
import { paymentEntity } from '../entities.ts'
import { KEY_WAIT_MS } from '../../settings/timeBudgets.ts'

/**
 * One payment with a key at a time stores the text of its reference and binds the key. Others wait KEY_WAIT_MS at most.
 */

const lockOf = (id: PaymentId): string => `requests with the key of ${id}`

/** Runs the work once earlier requests with the key have ended theirs. */
export const withKeyLock = <T>({ inTurn }: Pick<Ledger, 'inTurn'>, id: PaymentId, work: () => Promise<T>): Promise<T> =>
  inTurn(lockOf(id), work)

/** Waits for a concurrent request with the same key; false when it has not stored its idempotency record in time. */
export const waitForConcurrentRequest = async ({ idle, world }: Ledger, id: PaymentId): Promise<boolean> => {
  const holders = [idle(lockOf(id)), idle(streamOf(paymentEntity.aggregate, id))].filter(turn => turn !== undefined)
  if (holders.length === 0) return true
  const waited = new AbortController()
  const timeout = world.sleep(KEY_WAIT_MS, waited.signal).then(() => false)
  const free = Promise.all(holders).then(() => true)
  return Promise.race([free, timeout]).finally(() => waited.abort('over'))
}
