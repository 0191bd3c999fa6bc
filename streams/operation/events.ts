import { z } from 'zod'
import { annotationsSchema, claimSchema } from '../claim.ts'
import type { EventOf } from '../codec.ts'
import { positionSchema } from '../position.ts'

export const EXPORT_RESOURCES = ['orders', 'invoices', 'payments'] as const
export type ExportResource = (typeof EXPORT_RESOURCES)[number]

export const EXPORT_FORMATS = ['csv', 'jsonl', 'parquet'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

const request = {
  resource: z.enum(EXPORT_RESOURCES),
  format: z.enum(EXPORT_FORMATS),
  /** By the names that the list of the resource has for them. */
  filters: z.record(z.string(), z.string()),
  /** RFC 3339. From then on the file is no longer kept. */
  expires_at: z.string(),
}

export const operationEvents = {
  /** Accepted: from here on the export is made, whatever happens to the one who asked. */
  ExportRequested: z.object({ ...request, metadata: annotationsSchema, claim: claimSchema.nullable() }),
  /** `run` is whoever is at it now; an earlier run that wakes up again is no longer. */
  OperationStarted: z.object({ attempt: z.int(), run: z.string() }),
  /** It is tried again: `code` is the problem of this attempt. */
  OperationAttemptFailed: z.object({ attempt: z.int(), run: z.string(), code: z.string() }),
  /** The file is made: the manifest. Everything up to `to_position` is in it; rows may be newer. */
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
  /** What it made is no longer kept. */
  OperationExpired: z.object({}),
}
export type OperationEvent = EventOf<typeof operationEvents>
