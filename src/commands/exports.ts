import type { OperationRow } from '../../projections/operations/projection.ts'
import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import type { RequestExport } from '../../streams/operation/index.ts'
import { randomId } from '../lib/identifiers.ts'
import { DAY_MS } from '../lib/time.ts'
import type { Database } from '../ports.ts'
import type { Context, Ledger } from './commandHandler.ts'
import { operationEntity } from './entities.ts'
import { create, type CreationResult } from './idempotency/creation.ts'
import { idOfKey, type ScopedKey } from './idempotency/record.ts'
import { type Limit, reserve } from './quotas/reservations.ts'

const KEPT_DAYS = 30

export type NewExport = {
  readonly key: ScopedKey | undefined
  readonly idempotencyRecord: IdempotencyRecord | null
  readonly terms: Omit<RequestExport, 'type' | 'filters' | 'expires_at' | 'claim'>
  /** The filters of the event. Called once the export has its place. */
  readonly filters: () => Promise<RequestExport['filters']>
  /** The exports of the tenant and of the caller are counted. */
  readonly caller: { readonly tenant: string; readonly subject: string; readonly client: string }
  readonly max: Readonly<Record<Limit, number>>
}

type Refused = { readonly kind: 'quota_exceeded'; readonly limit: Limit }
type Dependencies = { readonly ledger: Ledger; readonly database: Database; readonly context: Context }

/** Creates the export, or finds the one that the same key created. */
export const createExportOnce = async (
  { ledger, database, context }: Dependencies,
  { key, idempotencyRecord, terms, filters, caller, max }: NewExport,
): Promise<CreationResult<OperationRow> | Refused> => {
  const id = key ? idOfKey('op', key) : randomId('op', ledger.world)
  const { tenant, subject, client } = caller
  const owner = JSON.stringify([tenant, subject, client])
  const keptSince = new Date(ledger.world.now() - KEPT_DAYS * DAY_MS).toISOString()
  const limit = await reserve(database, { kind: 'exports', tenant, owner, id, at: keptSince, max })
  if (limit !== undefined) return { kind: 'quota_exceeded', limit }
  const expires_at = new Date(ledger.world.now() + KEPT_DAYS * DAY_MS).toISOString()
  const { resource, format, metadata } = terms
  const command = {
    type: 'RequestExport' as const,
    ...{ resource, format, filters: await filters(), metadata, expires_at },
    claim: idempotencyRecord,
  }
  return create(ledger, operationEntity, id, { command, context, idempotencyRecord })
}
