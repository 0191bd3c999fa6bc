import type { AccessCommand } from '../../streams/access/index.ts'
import { accessEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'
import { randomId } from './identifiers.ts'

/**
 * Records a decision for the auditors that leaves no other event: it is durable when this resolves. Throws Unavailable:
 * what cannot be recorded must not be let pass.
 */
export const recordAccess = async (ledger: Ledger, command: AccessCommand, context: Context): Promise<void> => {
  const recorded = await handle(ledger, accessEntity, randomId('acc', ledger.world), { command, context, isNew: true })
  if (!recorded.ok) throw new Error('A new id was used before.')
}
