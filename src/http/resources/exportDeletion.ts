import { z } from 'zod'
import { idSchema, type OperationId } from '../../../streams/ids.ts'
import { handle } from '../../commands/commandHandler.ts'
import { operationEntity } from '../../commands/entities.ts'
import { deleteFile } from '../../processes/exports/exportFiles.ts'
import { recordAuditedDecision } from '../../commands/recordAuditedDecision.ts'
import { unlessUnavailable } from '../../ports.ts'
import { route } from '../route.ts'
import type { Call } from '../services.ts'
import { executed, visibleRow } from './commonReplies.ts'

/** Ends the export in any state, and deletes its file. The worker deletes what cannot be deleted now. */
const endAndDelete = async ({ ledger, database, params, context }: Call<{ id: OperationId }, unknown, unknown>) => {
  let position = 0n
  // Only one of the two has an effect: the first on an export that is running, the second on one that has a file.
  for (const type of ['CancelOperation', 'WithdrawFile'] as const) {
    const handled = await handle(ledger, operationEntity, params.id, { command: { type }, context })
    position = executed(handled).position
  }
  await unlessUnavailable(deleteFile(database.sql, params.id))
  return position
}

export const deleteExport = route({
  tag: 'Exports',
  method: 'DELETE',
  path: '/exports/{id}',
  operationId: 'delete_export',
  audited: 'path',
  summary: 'Delete the file of an export',
  description:
    'The operation can still be read: its state is expired, and the content is answered with 410. An export that has ' +
    'not finished is cancelled. Deleting it again has no effect.',
  scope: 'exports:write',
  params: z.object({ id: idSchema('op') }),
  responses: { 204: { description: 'The file is deleted.', headers: ['Ledger-Position'] } },
  handler: async call => {
    const { ledger, params, context } = call
    await visibleRow(call, operationEntity, params.id)
    const granted = { type: 'GrantAccess', operation: 'delete_export', resource: params.id } as const
    await recordAuditedDecision(ledger, granted, context)
    return { status: 204, headers: { 'Ledger-Position': (await endAndDelete(call)).toString() } }
  },
})
