import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const EXPORT_RESOURCES = ['orders', 'invoices', 'payments', 'journal_entries'] as const
export type ExportResource = (typeof EXPORT_RESOURCES)[number]

export const EXPORT_FORMATS = ['csv', 'jsonl', 'parquet'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

const request = {
  resource: z.enum(EXPORT_RESOURCES),
  format: z.enum(EXPORT_FORMATS),
  /** Named as the filters of the list of the resource. */
  filters: z.record(z.string(), z.string()),
  /** RFC 3339. The file is deleted from then on. */
  expires_at: z.string(),
}

export const operationEvents = {
  /** The request was accepted: the export is made even if the caller disconnects. */
  ExportRequested: z.object({ ...request, metadata: annotationsSchema, claim: idempotencyRecordSchema.nullable() }),
  /** `run` identifies the worker's attempt; an earlier attempt that wakes up again is no longer valid. */
  OperationStarted: z.object({ attempt: z.int(), run: z.string() }),
  /** The attempt failed with the problem `code`, and another one follows. */
  OperationAttemptFailed: z.object({ attempt: z.int(), run: z.string(), code: z.string() }),
  /** The file is complete. It contains everything up to `to_position`; rows may be newer. */
  ExportCompleted: z.object({
    ...request,
    attempt: z.int(),
    run: z.string(),
    row_count: z.int(),
    byte_count: z.int(),
    /** Hexadecimal. */
    sha256: z.string(),
    from_position: positionSchema,
    to_position: positionSchema,
  }),
  OperationFailed: z.object({ attempt: z.int(), code: z.string() }),
  OperationCancelled: z.object({}),
  /** The file was deleted. */
  OperationExpired: z.object({}),
}
export type OperationEvent = EventOf<typeof operationEvents>
