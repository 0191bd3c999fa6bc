import { z } from 'zod'
import { countMember, idMember, positionMember, textMember, timeMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
import type { OperationEvent } from './events.ts'

/** The facts of operations. */

export const operationFacts: FactMap<OperationEvent> = {
  ExportCompleted: announces({
    type: 'export.completed',
    version: 1,
    title: 'An export is complete',
    description: 'Its file can be fetched at /exports/{operation_id}/content until it expires. Once per export.',
    schema: z.object({
      operation_id: idMember('op', 'The operation that made it.'),
      resource: textMember('What is in it: orders, invoices, payments. Others may come.'),
      format: textMember('Of the file: csv, jsonl, parquet. Others may come.'),
      filters: z
        .record(z.string(), z.string())
        .meta({ description: 'The filters of the list of the resource, by their names; none when it is empty.' }),
      row_count: countMember('Rows in the file.'),
      byte_count: countMember('Bytes of the file.'),
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .meta({ description: 'Of the file, hexadecimal.' }),
      from_position: positionMember('Where the log begins that it was made of.'),
      to_position: positionMember('Everything up to here is in it, and nothing behind it.'),
      expires_at: timeMember('From then on the file is no longer kept.'),
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
