import type { Sql } from '../ports.ts'

/**
 * A position that the store has told, or the beginning of the log. No other may reach a subscription: positions of
 * EventStoreDB are byte offsets, and one that is no event's own (the one before an event's, say) is refused.
 */
export type Place = bigint | 'start'

/** Where each feed has got to. The epoch is that of the holder: whoever was replaced can no longer write. */
const TABLE = `
  create table if not exists checkpoints (
    name text primary key,
    position bigint not null,
    epoch bigint not null,
    updated_at timestamptz not null default now()
  )`

/** Another process has taken over while this one slept. It must write nothing more. */
export class Replaced extends Error {
  constructor(name: string) {
    super(`Another process has taken over ${name}.`)
    this.name = 'Replaced'
  }
}

export const createCheckpoints = async (sql: Sql): Promise<void> => {
  await sql(TABLE)
}

/** The position to go on from, or `start`; from now on only this epoch, or a newer one, may move it. */
export const takeCheckpoint = async (sql: Sql, name: string, epoch: bigint): Promise<Place> => {
  const [row] = await sql<{ position: bigint }>(
    `insert into checkpoints (name, position, epoch) values ($1, -1, $2)
     on conflict (name) do update set epoch = excluded.epoch where checkpoints.epoch <= excluded.epoch
     returning position`,
    [name, epoch],
  )
  if (row === undefined) throw new Replaced(name)
  return row.position < 0n ? 'start' : row.position
}

/**
 * Part of the transaction whose work it records. A checkpoint never goes back, so that with `start` it moves nothing and
 * only finds out whether this process is still the one. Throws Replaced, and so undoes that work, in an old epoch.
 */
export const moveCheckpoint = async (
  sql: Sql,
  names: readonly string[],
  position: Place,
  epoch: bigint,
): Promise<void> => {
  const moved = await sql(
    `update checkpoints set position = greatest(position, $2), updated_at = now()
      where name = any($1::text[]) and epoch = $3 returning name`,
    [names, position === 'start' ? -1n : position, epoch],
  )
  if (moved.length < names.length) throw new Replaced(names.join(', '))
}

/** How far every feed has got, in one look. */
export const reachedBy = async (sql: Sql): Promise<ReadonlyMap<string, bigint>> => {
  const rows = await sql<{ name: string; position: bigint }>('select name, position from checkpoints')
  return new Map(rows.map(({ name, position }) => [name, position]))
}

/** How far a read model has got: what a list says it is as of. Zero before its first event. */
export const positionOf = async (sql: Sql, name: string): Promise<bigint> => {
  const [row] = await sql<{ position: bigint }>('select position from checkpoints where name = $1', [name])
  return row === undefined || row.position < 0n ? 0n : row.position
}
