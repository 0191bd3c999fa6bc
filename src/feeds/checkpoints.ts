import { WITHOUT_DISK } from '../schema/commitWithoutDisk.ts'
import type { Sql } from '../ports.ts'

/**
 * The epoch is that of the process that holds the lease of the feed: a process that was replaced can no longer write.
 */

/** The position to continue after: one that the store has returned, since EventStoreDB refuses a computed one. */
export type ResumePosition = bigint | 'start'

const numberOf = (position: ResumePosition): bigint => (position === 'start' ? -1n : position)

/** Another process has taken over this feed, and this one must write nothing more. */
export class EpochSuperseded extends Error {
  constructor(name: string) {
    super(`Another process has taken over ${name}.`)
    this.name = 'EpochSuperseded'
  }
}

/** Resolves to the position to continue after. From now on only this epoch, or a newer one, may move the checkpoint. */
export const acquireCheckpoint = async (sql: Sql, name: string, epoch: bigint): Promise<ResumePosition> => {
  const [row] = await sql<{ position: bigint }>(
    `insert into checkpoints (name, position, epoch) values ($1, -1, $2)
     on conflict (name) do update set epoch = excluded.epoch where checkpoints.epoch <= excluded.epoch
     returning position`,
    [name, epoch],
  )
  if (row === undefined) throw new EpochSuperseded(name)
  return row.position < 0n ? 'start' : row.position
}

/** In the transaction whose work it records. Throws EpochSuperseded in an old epoch. `start` only tests the epoch. */
export const moveCheckpoint = async (
  sql: Sql,
  names: readonly string[],
  position: ResumePosition,
  epoch: bigint,
): Promise<void> => {
  const moved = await sql(
    `update checkpoints set position = greatest(position, $2), updated_at = now()
      where name = any($1::text[]) and epoch = $3 returning name`,
    [names, numberOf(position), epoch],
  )
  if (moved.length < names.length) throw new EpochSuperseded(names.join(', '))
}

export type CheckpointMove = { readonly name: string; readonly position: ResumePosition; readonly epoch: bigint }

/** The number of the first parameter of the statements of `moveCheckpointWith`. */
export const FIRST_PARAMETER = 4

/**
 * Moves one checkpoint and writes its rows in one statement. The commit waits for the disk, because a run may continue
 * rows that it has written. `writes`: named parts of a `with` statement, joined to `moved`, which has no row in an old
 * epoch. Throws EpochSuperseded then, with nothing written.
 */
export const moveCheckpointWith = async (
  sql: Sql,
  { name, position, epoch }: CheckpointMove,
  writes: string,
  values: readonly unknown[],
): Promise<void> => {
  const moved = await sql(
    `with moved as (update checkpoints set position = greatest(checkpoints.position, $2), updated_at = now()
        where name = $1 and epoch = $3 returning name), ${writes}
     select name from moved`,
    [name, numberOf(position), epoch, ...values],
  )
  if (moved.length === 0) throw new EpochSuperseded(name)
}

/** Moves a checkpoint without rows, by a commit that does not wait for the disk. Throws EpochSuperseded. */
export const moveCheckpointAlone = async (sql: Sql, { name, position, epoch }: CheckpointMove): Promise<void> => {
  const moved = await sql(
    `update checkpoints set position = greatest(position, $2), updated_at = now()
      where name = $1 and epoch = $3 and ${WITHOUT_DISK} returning name`,
    [name, numberOf(position), epoch],
  )
  if (moved.length === 0) throw new EpochSuperseded(name)
}

/** Tests the epoch within a transaction: throws EpochSuperseded in an old one. */
export const fenceCheckpoint =
  (name: string, epoch: bigint) =>
  (sql: Sql): Promise<void> =>
    moveCheckpoint(sql, [name], 'start', epoch)

/**
 * Ends the run of a feed from outside; within a transaction the lock of the row holds its process back until the end.
 */
export const supersedeCheckpoint = async (sql: Sql, name: string): Promise<void> => {
  await sql(
    `insert into checkpoints (name, position, epoch) values ($1, -1, 0)
     on conflict (name) do update set epoch = checkpoints.epoch + 1`,
    [name],
  )
}

export const checkpointPositions = async (sql: Sql): Promise<ReadonlyMap<string, bigint>> => {
  const rows = await sql<{ name: string; position: bigint }>('select name, position from checkpoints')
  return new Map(rows.map(({ name, position }) => [name, position]))
}

/** The position of a checkpoint; zero before the first event. Lists report it as the position up to which they are current. */
export const positionOf = async (sql: Sql, name: string): Promise<bigint> => {
  const [row] = await sql<{ position: bigint }>('select position from checkpoints where name = $1', [name])
  return row === undefined || row.position < 0n ? 0n : row.position
}
