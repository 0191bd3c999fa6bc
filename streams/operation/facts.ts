import type { FactMap } from '../facts.ts'
import type { OperationEvent } from './events.ts'

export const operationFacts: FactMap<OperationEvent> = {
  ExportCompleted: ({ id, event: { data } }) => ({
    type: 'export.completed',
    version: 1,
    data: {
      operation_id: id,
      resource: data.resource,
      format: data.format,
      filters: data.filters,
      row_count: data.row_count,
      byte_count: data.byte_count,
      sha256: data.sha256,
      from_position: data.from_position.toString(),
      to_position: data.to_position.toString(),
      expires_at: data.expires_at,
    },
  }),
  ExportRequested: 'internal',
  OperationStarted: 'internal',
  OperationAttemptFailed: 'internal',
  OperationFailed: 'internal',
  OperationCancelled: 'internal',
  OperationExpired: 'internal',
}
