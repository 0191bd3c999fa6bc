import { z } from 'zod'
import { countMember, idMember, positionMember, textMember, timeMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
import type { OperationEvent } from './events.ts'

export const operationFacts: FactMap<OperationEvent> = {
  ExportCompleted: announces({
    type: 'export.completed',
    version: 1,
    title: 'An export is complete',
    description:
      'The file is available at /exports/{operation_id}/content until it expires. Published once per export.',
    schema: z.object({
      operation_id: idMember('op', 'The operation of the export.'),
      resource: textMember('The exported resource: orders, invoices, payments. Other values may be added.'),
      format: textMember('The format of the file: csv, jsonl, parquet. Other values may be added.'),
      filters: z
        .record(z.string(), z.string())
        .meta({ description: 'The filters of the resource’s list, by name; empty without filters.' }),
      row_count: countMember('The number of rows in the file.'),
      byte_count: countMember('The number of bytes of the file.'),
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .meta({ description: 'SHA-256 of the file, in hexadecimal.' }),
      from_position: positionMember('The first position of the log that the file is made from.'),
      to_position: positionMember('The last position of the log that the file is made from.'),
      expires_at: timeMember('The time at which the file expires.'),
    }),
    example: {
      operation_id: 'op_01JB3NEX2R5S8T0VWYZ3A6BCDF',
      resource: 'payments',
      format: 'csv',
      filters: { currency: 'EUR' },
      row_count: 1_204,
      byte_count: 186_310,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      from_position: '0',
      to_position: '7731904',
      expires_at: '2026-12-11T09:30:00.123Z',
    },
    data: ({ id, event: { data } }) => ({
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
    }),
  }),
  ExportRequested: 'internal',
  OperationStarted: 'internal',
  OperationAttemptFailed: 'internal',
  OperationFailed: 'internal',
  OperationCancelled: 'internal',
  OperationExpired: 'internal',
}
