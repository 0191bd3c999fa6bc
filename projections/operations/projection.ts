import type { Annotations } from '../../streams/idempotencyRecord.ts'
import type { ExportFormat, ExportResource, OperationEvent } from '../../streams/operation/index.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

export type OperationRow = ResourceRow & {
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'
  readonly kind: 'export'
  readonly resource: ExportResource
  readonly format: ExportFormat
  readonly filters: Readonly<Record<string, string>>
  readonly metadata: Annotations
  readonly expires_at: string
  /** The request's correlation id, so a failed operation can be found in the logs. */
  readonly correlation_id: string
  /** The newest attempt, which file and progress belong to. Zero before the first. */
  readonly attempt: number
  readonly completed_at: string | null
  readonly row_count: bigint | null
  readonly byte_count: bigint | null
  readonly sha256: string | null
  readonly from_position: bigint | null
  readonly to_position: bigint | null
  readonly error_code: string | null
}

export const operations: Projection<OperationEvent, OperationRow> = {
  name: 'operations_v1',
  category: 'operation',
  columns: {
    ...RESOURCE_COLUMNS,
    kind: 'text',
    resource: 'text',
    format: 'text',
    filters: 'json',
    metadata: 'json',
    expires_at: 'timestamptz',
    correlation_id: 'text',
    attempt: 'integer',
    completed_at: 'timestamptz',
    row_count: 'bigint',
    byte_count: 'bigint',
    sha256: 'text',
    from_position: 'bigint',
    to_position: 'bigint',
    error_code: 'text',
  },
  first: 'ExportRequested',
  begin: ({ event, metadata: { correlationId } }) => {
    if (event.type !== 'ExportRequested') throw new TypeError(event.type)
    const { claim: _, ...terms } = event.data
    return {
      ...terms,
      kind: 'export',
      state: 'pending',
      correlation_id: correlationId,
      attempt: 0,
      completed_at: null,
      row_count: null,
      byte_count: null,
      sha256: null,
      from_position: null,
      to_position: null,
      error_code: null,
    }
  },
  on: {
    ExportRequested: () => ({}),
    OperationStarted: (_, { event: { data } }) => ({ state: 'running', attempt: data.attempt }),
    OperationAttemptFailed: () => ({}),
    ExportCompleted: (_, { event: { data }, metadata }) => ({
      state: 'succeeded',
      completed_at: metadata.at,
      row_count: BigInt(data.row_count),
      byte_count: BigInt(data.byte_count),
      sha256: data.sha256,
      from_position: data.from_position,
      to_position: data.to_position,
    }),
    OperationFailed: (_, { event: { data } }) => ({ state: 'failed', error_code: data.code }),
    OperationCancelled: () => ({ state: 'cancelled' }),
    OperationExpired: () => ({ state: 'expired' }),
  },
}
