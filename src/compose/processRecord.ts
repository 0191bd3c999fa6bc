import { hostname } from 'node:os'
import { VOCABULARY } from '../../streams/addedEvents.ts'
import type { Logger, Sql } from '../ports.ts'

/** The starts and stops of the processes of the service, for GET /installation and `ledger doctor`. */

const KEPT = '90 days'
const SEEN_EVERY_MS = 10_000
/** Of a process that neither stopped nor was seen for longer it is assumed that it was killed. */
const UNSEEN_MAX = '60 seconds'

export type RunningProcess = { readonly name: string; readonly roles: readonly string[]; readonly vocabulary: number }

const RUNNING = `select name, roles, vocabulary from service_processes
  where stopped_at is null and seen_at > now() - interval '${UNSEEN_MAX}' order by started_at, name`

/** The processes that run, the oldest first. */
export const runningProcesses = (sql: Sql): Promise<RunningProcess[]> => sql<RunningProcess>(RUNNING)

/** Resolves to the function that records the stop. Nothing depends on these rows: a failure is only logged. */
export const recordStart = async (
  sql: Sql,
  roles: readonly string[],
  logger: Pick<Logger, 'warn'>,
): Promise<() => Promise<void>> => {
  const onFailure = (error: unknown): void =>
    logger.warn({ error }, 'failed to record the start or stop of this process')
  // The name that the holder of a lease has.
  const name = `${hostname()}:${process.pid}`
  try {
    await sql(`delete from service_processes where started_at < now() - interval '${KEPT}'`)
    const insert = 'insert into service_processes (name, roles, vocabulary) values ($1, $2, $3) returning started_at'
    const [row] = await sql<{ started_at: string }>(insert, [name, roles, VOCABULARY])
    const set = (column: 'seen_at' | 'stopped_at'): Promise<void> =>
      sql(`update service_processes set ${column} = clock_timestamp() where name = $1 and started_at = $2`, [
        name,
        row?.started_at,
      ]).then(() => undefined, onFailure)
    const seen = setInterval(() => void set('seen_at'), SEEN_EVERY_MS).unref()
    return () => {
      clearInterval(seen)
      return set('stopped_at')
    }
  } catch (error) {
    onFailure(error)
    return async () => undefined
  }
}
