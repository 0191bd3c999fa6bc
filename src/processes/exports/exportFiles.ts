import { createHash } from 'node:crypto'
import { type Sql, Unavailable } from '../../ports.ts'
import { WITHOUT_DISK } from '../../schema/commitWithoutDisk.ts'

/** Chunks in Postgres, for every instance. Those of attempts that the operation's stream does not name are garbage. */

/** The length of every stored chunk but the last of a file, and so the memory that a file of any size takes. */
const CHUNK_BYTES = 256 * 1024
/** Deletion goes in batches, because the database ends a statement that takes too long. */
const DELETED_AT_ONCE = 64

export type Attempt = { readonly id: string; readonly attempt: number }
export type Written = { readonly byte_count: number; readonly sha256: string }

export type FileSink = {
  readonly write: (bytes: Uint8Array) => Promise<void>
  /** Writes the rest; everything is durable when this resolves. */
  readonly end: () => Promise<Written>
}

const INTO_CHUNKS = 'insert into export_chunks (operation_id, attempt, seq, bytes)'

const STORE_CHUNK = `${INTO_CHUNKS} select $1::text, $2::integer, $3::integer, $4::bytea where ${WITHOUT_DISK}`

/** Stored if all chunks before it are there. Its commit waits for the disk, and so for the earlier ones in Postgres's log. */
const STORE_LAST_CHUNK = `${INTO_CHUNKS} select $1::text, $2::integer, $3::integer, $4::bytea
  where $3::integer = (select count(*) from export_chunks where operation_id = $1 and attempt = $2) returning seq`

const storeLastChunk = async (sql: Sql, { id, attempt }: Attempt, seq: number, bytes: Uint8Array): Promise<void> => {
  const stored = await sql(STORE_LAST_CHUNK, [id, attempt, seq, bytes])
  if (stored.length > 0) return
  const cause = new Error(`Postgres has lost chunks of attempt ${attempt} at ${id}, after a crash or a failover.`)
  throw new Unavailable('database', { effect: 'none', cause })
}

/** Only the last chunk waits for the disk. If a crash loses earlier ones, `end` throws Unavailable: a new attempt. */
export const fileSink = (sql: Sql, { id, attempt }: Attempt): FileSink => {
  const hash = createHash('sha256')
  let pieces: Uint8Array[] = []
  let waiting = 0
  let byteCount = 0
  let seq = 0
  let storing: Promise<unknown> = Promise.resolve()
  // One chunk is stored while the next one is written. A failure is thrown by the next write, or by the end.
  const put = async (bytes: Uint8Array): Promise<void> => {
    await storing
    storing = sql(STORE_CHUNK, [id, attempt, seq, bytes])
    storing.catch(() => undefined)
    seq += 1
  }
  /** Leaves the last bytes for `end`, which stores them as the last chunk. */
  const storeWholeChunks = async (): Promise<void> => {
    if (waiting <= CHUNK_BYTES) return
    const whole = Buffer.concat(pieces, waiting)
    let from = 0
    for (; waiting - from > CHUNK_BYTES; from += CHUNK_BYTES) await put(whole.subarray(from, from + CHUNK_BYTES))
    pieces = [whole.subarray(from)]
    waiting -= from
  }
  return {
    write: async bytes => {
      hash.update(bytes)
      pieces.push(bytes)
      waiting += bytes.length
      byteCount += bytes.length
      await storeWholeChunks()
    },
    end: async () => {
      await storing
      if (waiting > 0) await storeLastChunk(sql, { id, attempt }, seq, Buffer.concat(pieces, waiting))
      return { byte_count: byteCount, sha256: hash.digest('hex') }
    },
  }
}

/** After a restore of Postgres chunks of a file may be lost. Reads none: Postgres keeps the lengths apart from the bytes. */
export const isComplete = async (sql: Sql, { id, attempt }: Attempt, byteCount: bigint): Promise<boolean> => {
  const [row] = await sql<{ complete: boolean }>(
    `select coalesce(sum(octet_length(bytes)), 0) = $3::bigint as complete from export_chunks
      where operation_id = $1 and attempt = $2`,
    [id, attempt, byteCount],
  )
  return row?.complete === true
}

const CHUNK = 'from export_chunks where operation_id = $1 and attempt = $2 and seq = $3'

/** The bytes from `first` to before `end`, a chunk at a time. Ends early when chunks are gone. */
export async function* bytesOf(
  sql: Sql,
  { id, attempt }: Attempt,
  { first, end }: { readonly first: bigint; readonly end: bigint },
): AsyncGenerator<Uint8Array> {
  const chunkBytes = BigInt(CHUNK_BYTES)
  for (let at = first; at < end; ) {
    const seq = at / chunkBytes
    const [chunk] = await sql<{ bytes: string }>(`select encode(bytes, 'base64') as bytes ${CHUNK}`, [id, attempt, seq])
    // `pg` reads values as text, in which hexadecimal digits take twice the size, and base64 four thirds.
    const bytes = chunk && Buffer.from(chunk.bytes, 'base64')
    const piece = bytes?.subarray(Number(at % chunkBytes), Number(end - seq * chunkBytes))
    if (piece === undefined || piece.length === 0) return
    yield piece
    at += BigInt(piece.length)
  }
}

const deleteChunks = async (sql: Sql, where: string, values: readonly unknown[]): Promise<void> => {
  for (;;) {
    const deleted = await sql(
      `delete from export_chunks where (operation_id, attempt, seq) in
        (select operation_id, attempt, seq from export_chunks where ${where} limit ${DELETED_AT_ONCE}) returning seq`,
      values,
    )
    if (deleted.length < DELETED_AT_ONCE) return
  }
}

export const deleteEarlier = (sql: Sql, { id, attempt }: Attempt): Promise<void> =>
  deleteChunks(sql, 'operation_id = $1 and attempt < $2', [id, attempt])

export const deleteFile = async (sql: Sql, id: string): Promise<void> => {
  await deleteChunks(sql, 'operation_id = $1', [id])
  await sql('delete from operation_progress where operation_id = $1', [id])
  await sql('delete from export_erasures where operation_id = $1', [id])
}

/** The attempts whose chunks belong to no file: the operation did not succeed, or succeeded with another attempt. */
export const strayFiles = async (sql: Sql): Promise<Attempt[]> =>
  sql<Attempt>(
    `select distinct operation_id as id, export_chunks.attempt from export_chunks
      join operations_v1 on operations_v1.id = operation_id
      where state in ('failed', 'cancelled', 'expired')
        or (state = 'succeeded' and export_chunks.attempt <> operations_v1.attempt)
      order by id, attempt`,
  )

export const deleteAttempt = (sql: Sql, { id, attempt }: Attempt): Promise<void> =>
  deleteChunks(sql, 'operation_id = $1 and attempt = $2', [id, attempt])

/** The progress of a running operation. It is no event, because the next attempt begins anew. */
export type Progress = {
  readonly attempt: number
  /** Increases with every change. */
  readonly tick: number
  readonly done: bigint
  readonly total: bigint
  /** Rows per second. */
  readonly rate: bigint
  readonly eta_seconds: bigint | null
}

export const saveProgress = async (sql: Sql, id: string, progress: Progress): Promise<void> => {
  const { attempt, tick, done, total, rate, eta_seconds } = progress
  await sql(
    `insert into operation_progress (operation_id, attempt, tick, done, total, rate, eta_seconds)
      values ($1, $2, $3, $4, $5, $6, $7) on conflict (operation_id) do update set attempt = excluded.attempt,
      tick = excluded.tick, done = excluded.done, total = excluded.total, rate = excluded.rate,
      eta_seconds = excluded.eta_seconds where operation_progress.attempt <= excluded.attempt`,
    [id, attempt, tick, done, total, rate, eta_seconds],
  )
}

export const progressOf = async (sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, Progress>> => {
  const rows = await sql<Progress & { operation_id: string }>(
    `select operation_id, attempt, tick, done, total, rate, eta_seconds from operation_progress
      where operation_id = any($1::text[])`,
    [ids],
  )
  return new Map(rows.map(({ operation_id, ...progress }) => [operation_id, progress]))
}
