import type { AccessCommand } from '../../streams/access/index.ts'
import { accessEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { randomId } from '../lib/identifiers.ts'

/** Durable when it resolves. If it throws (Unavailable, QuotaExceeded), the decision must not take effect. */
export const recordAuditedDecision = async (
  ledger: Ledger,
  command: AccessCommand,
  context: Context,
): Promise<void> => {
  const request = {
    command,
    context: { ...context, quota: { use: 'audit_record' as const, ...context.quota } },
    load: 'assume_empty' as const,
  }
  const recorded = await handle(ledger, accessEntity, randomId('acc', ledger.world), request)
  if (!recorded.ok) throw new Error('A new id was used before.')
}
