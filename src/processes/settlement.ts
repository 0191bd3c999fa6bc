import { isId } from '../../streams/ids.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import type { Ledger } from '../commands/handle.ts'
import { finish } from '../commands/payments.ts'
import { contextOf, type Process } from './process.ts'

/** Longer than any request lives: a payment that is still open then has lost its request. */
const GRACE_MS = 3_000

/** Drives on every payment that was claimed and never came to an outcome, because its request died. */
export const settlement = (ledger: Ledger): Process => ({
  name: 'settlement',
  categories: ['payment'],
  begins: recorded => {
    const { id } = recorded
    if (recorded.event.type !== ('PaymentInitiated' satisfies PaymentEvent['type']) || !isId('pay', id))
      return undefined
    return {
      key: id,
      graceMs: GRACE_MS,
      finish: async () => {
        await finish(ledger, id, contextOf('settlement', recorded, ledger.world))
      },
    }
  },
  ends: ({ id, event }) => (event.type === 'PaymentInitiated' ? undefined : id),
})
