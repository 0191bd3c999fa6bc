import { setTimeout as sleep } from 'node:timers/promises'
import { processGroups } from './cpu.ts'
import type { RunningService } from './harness.ts'
import { POSTGRES_REPORTS_MS, type PostgresReading, readPostgres } from './postgresFigures.ts'
import { readSystem, type SystemFigures, type SystemReading, systemPerOperation } from './systemFigures.ts'

/** Readings of the counts that processes and Postgres keep themselves, before and after a phase of `--profile`. */

/** The processes whose work for a payment is counted. */
const PROCESSES = ['service', 'event store', 'Postgres'] as const
export type SystemByProcess = Readonly<Partial<Record<(typeof PROCESSES)[number], SystemFigures>>>

export type Readings = ReadonlyMap<(typeof PROCESSES)[number], SystemReading>

/** Without those that cannot be read. */
export const readProcesses = async ({ addresses, kafkaPid }: RunningService): Promise<Readings> => {
  const groups = processGroups(addresses.pids, kafkaPid)
  const read = await Promise.all(
    PROCESSES.map(async name => {
      const group = groups[name]
      const reading = group && (await readSystem(group))
      return reading === undefined ? [] : [[name, reading] as const]
    }),
  )
  return new Map(read.flat())
}

/** The counts between two readings for each of `count` operations. */
export const systemBetween = (before: Readings, after: Readings, count: number): SystemByProcess =>
  Object.fromEntries(
    [...after].flatMap(([name, now]) => {
      const then = before.get(name)
      return then === undefined ? [] : [[name, systemPerOperation(then, now, count)]]
    }),
  )

/** The counts of Postgres when its backends have reported what they have done until now. */
export const readSettledPostgres = async (databases: readonly string[]): Promise<PostgresReading> => {
  await sleep(POSTGRES_REPORTS_MS)
  return readPostgres(databases)
}
