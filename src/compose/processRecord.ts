import { hostname } from 'node:os'
import type { Logger, Sql } from '../ports.ts'

/** The starts and stops of the processes of the service, for GET /installation. */

const KEPT = '90 days'

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
    const insert = 'insert into service_processes (name, roles) values ($1, $2) returning started_at'
    const [row] = await sql<{ started_at: string }>(insert, [name, roles])
    const update = 'update service_processes set stopped_at = clock_timestamp() where name = $1 and started_at = $2'
    return () => sql(update, [name, row?.started_at]).then(() => undefined, onFailure)
  } catch (error) {
    onFailure(error)
    return async () => undefined
  }
}
