import type { Sql } from '../../ports.ts'

/**
 * The requests for rebuilds of read models, and their states. The process that holds the lease `rebuild` executes them one after
 * the other, in the order of the requests (rebuildLoop.ts).
 *
 *   pending ──▶ running ──▶ succeeded       the tables are switched (rebuild, rollback), or compared (verify)
 *      ▲           ├──────▶ failed          an event cannot be processed, or the read model is unknown to this build
 *      │           └──────▶ refused         the new rows differ: the live tables stay, and the new ones wait for a decision
 *      └── accepted by an operator ───────────┘
 *   pending, running, refused ──▶ cancelled
 */

export const REBUILD_KINDS = ['rebuild', 'verify', 'rollback'] as const
export type RebuildKind = (typeof REBUILD_KINDS)[number]
export const REBUILD_STATES = ['pending', 'running', 'refused', 'succeeded', 'failed', 'cancelled'] as const
export type RebuildState = (typeof REBUILD_STATES)[number]

/** The first row that differs, by table and key. A missing row has neither a column nor values of its side. */
export type Difference = {
  readonly table: string
  /** The values of the primary key, separated by commas; null where the tables themselves differ. */
  readonly key: string | null
  readonly tenant_id: string | null
  /** Null where one side has no such row. */
  readonly column: string | null
  readonly live: string | null
  readonly rebuilt: string | null
  readonly rows: number
}

export type ComparedTable = {
  readonly table: string
  readonly tenants: number
  readonly rows: number
  /** Equal for equal rows, whatever their order. */
  readonly checksum: string
}
/** The tables as compared, when both had exactly the events up to `position`. */
export type Parity = { readonly position: string; readonly tables: readonly ComparedTable[] }

export type RebuildRow = {
  readonly id: string
  readonly kind: RebuildKind
  readonly projection: string
  readonly state: RebuildState
  readonly prepared: boolean
  readonly position: bigint
  readonly done: bigint
  /** An estimate, from the share of the log that was read; null before the first batch. */
  readonly total: bigint | null
  /** Events a second. */
  readonly rate: bigint | null
  readonly eta_seconds: bigint | null
  readonly parity: Parity | null
  readonly difference: Difference | null
  readonly accepted_reason: string | null
  readonly error: string | null
  readonly requested_by: string
  readonly requested_at: string
  readonly ended_at: string | null
}

const COLUMNS = `id, kind, projection, state, prepared, position, done, total, rate, eta_seconds, parity, difference,
  accepted_reason, error, requested_by, requested_at, ended_at`

export type RebuildRequest = Pick<RebuildRow, 'id' | 'kind' | 'projection' | 'requested_by'>

/** `under_way`: `id` is the rebuild of the same read model that has not ended. `nothing_kept`: no earlier tables exist. */
export type RequestedRebuild =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly code: 'under_way'; readonly id: string }
  | { readonly ok: false; readonly code: 'nothing_kept' }

/** A refused rebuild makes way for a new one or a rollback, and its tables are dropped before that begins. */
const MAKE_WAY = `update projection_rebuilds set state = 'cancelled', ended_at = now()
  where projection = $1 and state = 'refused'`

/** Runs in a transaction. */
export const requestRebuild = async (
  sql: Sql,
  { id, kind, projection, requested_by }: RebuildRequest,
): Promise<RequestedRebuild> => {
  if (kind === 'rollback') {
    const [kept] = await sql('select 1 from previous_projections where projection = $1', [projection])
    if (kept === undefined) return { ok: false, code: 'nothing_kept' }
  }
  // A comparison changes nothing, so it takes no decision from the operators.
  if (kind !== 'verify') await sql(MAKE_WAY, [projection])
  // The rebuild that is in the way may end between the two statements; then there is room for this one.
  for (;;) {
    const [inserted] = await sql(
      `insert into projection_rebuilds (id, kind, projection, state, requested_by) values ($1, $2, $3, 'pending', $4)
        on conflict (projection) where state in ('pending', 'running', 'refused') do nothing returning id`,
      [id, kind, projection, requested_by],
    )
    if (inserted !== undefined) return { ok: true, id }
    const [open] = await sql<{ id: string }>(
      `select id from projection_rebuilds where projection = $1 and state in ('pending', 'running', 'refused')`,
      [projection],
    )
    if (open !== undefined) return { ok: false, code: 'under_way', id: open.id }
  }
}

/** Switches a refused rebuild in spite of its difference; false if it is not refused. */
export const acceptDifferences = async (sql: Sql, id: string, reason: string): Promise<boolean> => {
  const accepted = await sql(
    `update projection_rebuilds set state = 'pending', accepted_reason = $2
      where id = $1 and state = 'refused' returning id`,
    [id, reason],
  )
  return accepted.length > 0
}

/** Resolves to whether it was in flight. The process that executes it ends with its present batch, and drops the new tables. */
export const cancelRebuild = async (sql: Sql, id: string): Promise<boolean> => {
  const cancelled = await sql(
    `update projection_rebuilds set state = 'cancelled', ended_at = now()
      where id = $1 and state in ('pending', 'running', 'refused') returning id`,
    [id],
  )
  return cancelled.length > 0
}

export const rebuildById = async (sql: Sql, id: string): Promise<RebuildRow | undefined> =>
  (await sql<RebuildRow>(`select ${COLUMNS} from projection_rebuilds where id = $1`, [id]))[0]

export const newestRebuilds = (sql: Sql): Promise<RebuildRow[]> =>
  sql<RebuildRow>(`select distinct on (projection) ${COLUMNS} from projection_rebuilds order by projection, seq desc`)

/** The rebuild to execute next: one that is in flight since an earlier process ended, or the oldest request. */
export const nextRebuild = async (sql: Sql): Promise<RebuildRow | undefined> =>
  (
    await sql<RebuildRow>(
      `select ${COLUMNS} from projection_rebuilds where state in ('pending', 'running')
        order by state = 'running' desc, seq limit 1`,
    )
  )[0]

/** Whether there is a rebuild to execute, or tables of an ended one to drop. */
export const hasRebuildWork = async (sql: Sql): Promise<boolean> =>
  (
    await sql(
      `select 1 from projection_rebuilds where state in ('pending', 'running') or prepared and state <> 'refused' limit 1`,
    )
  ).length > 0

/** A rebuild that has ended without a switch, and whose tables are still there. */
export const unreleasedRebuild = async (sql: Sql): Promise<RebuildRow | undefined> =>
  (
    await sql<RebuildRow>(
      `select ${COLUMNS} from projection_rebuilds
        where prepared and state in ('cancelled', 'failed', 'succeeded') order by seq limit 1`,
    )
  )[0]

/** The read models whose replaced tables are kept, with the position up to which those have every event. */
export const previousProjections = async (sql: Sql): Promise<ReadonlyMap<string, bigint>> => {
  const rows = await sql<{ projection: string; position: bigint }>(
    'select projection, position from previous_projections',
  )
  return new Map(rows.map(({ projection, position }) => [projection, position]))
}
