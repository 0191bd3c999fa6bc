import type { Database, Sql } from '../../ports.ts'
import type { Context, Ledger } from '../../commands/commandHandler.ts'
import { recordAuditedDecision } from '../../commands/recordAuditedDecision.ts'

/** A switch in Postgres that all instances read. Each change is an audit record first, so none is unrecorded. */

export const retiredVersions = async (sql: Sql): Promise<ReadonlySet<string>> => {
  const rows = await sql<{ version: string }>('select version from retired_api_versions')
  return new Set(rows.map(({ version }) => version))
}

export type Operation = 'retire_api_version' | 'force_retire_api_version' | 'restore_api_version'

type Change = { readonly version: string; readonly operation: Operation }

const STATEMENTS: Readonly<Record<Operation, string>> = {
  retire_api_version: 'insert into retired_api_versions (version) values ($1) on conflict do nothing',
  force_retire_api_version: 'insert into retired_api_versions (version) values ($1) on conflict do nothing',
  restore_api_version: 'delete from retired_api_versions where version = $1',
}

/** Retires or restores a version. A repeated command changes nothing, and is recorded again. */
export const changeRetirement = async (
  { ledger, database }: { readonly ledger: Ledger; readonly database: Pick<Database, 'sql'> },
  { version, operation }: Change,
  context: Context,
): Promise<void> => {
  await recordAuditedDecision(ledger, { type: 'GrantAccess', operation, resource: version }, context)
  await database.sql(STATEMENTS[operation], [version])
}
