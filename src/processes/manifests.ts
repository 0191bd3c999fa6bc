import { firstFact } from '../../projections/facts/queries.ts'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import type { Ledger } from '../commands/commandHandler.ts'
import { FACTS, lastSealedAt, sealManifest } from '../commands/manifests.ts'
import { moveCheckpointAlone, positionOf, acquireCheckpoint } from '../feeds/checkpoints.ts'
import { type Feed, UNHURRIED_GATHER_MS } from '../feeds/feedLoop.ts'
import type { Database } from '../ports.ts'

/**
 * The process that seals every topic at the end of each hour: it appends a manifest of the facts from the end of the last
 * manifest up to the checkpoint of the facts.
 *
 *   due     the last manifest, or the first fact of the ledger if there is none, is of an earlier hour
 *   sealed  a manifest of this hour is in the log, by this process, another one or an operator
 *
 * The state is in the log, so it survives a restart: after hours of downtime one manifest covers them all. An hour
 * without facts is sealed too: consumers can distinguish it from an hour that was not counted. Two processes cannot seal the
 * same facts, because both append at the revision that they have read.
 */

export const NAME = 'manifests'
/** A period that could not be sealed is tried again after this time. */
const RETRY_MS = 1_000
/** The clock may be set, so the end of a period is not waited for in one piece. */
const WAIT_MAX_MS = 30_000

export type ManifestDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  /** One hour by default. The periods begin at multiples of it since the epoch, in UTC. */
  readonly everyMs: number
}

/** Since the end of the oldest period that is due; zero while none is, as in a ledger without facts. */
export const overdueMs = async ({ database: { sql }, ledger, everyMs }: ManifestDependencies): Promise<number> => {
  const [first] = await sql<{ at: string }>(firstFact.text, firstFact.values)
  if (first === undefined) return 0
  const sealedAt = await Promise.all(MANIFEST_TOPICS.map(topic => lastSealedAt(ledger, topic)))
  const ends = sealedAt.map(at => (Math.floor(Date.parse(at ?? first.at) / everyMs) + 1) * everyMs)
  return Math.max(0, ledger.world.now() - Math.min(...ends))
}

const createSealer = ({ database: { sql }, ledger, everyMs }: ManifestDependencies) => {
  const hourOf = (timeMs: number): number => Math.floor(timeMs / everyMs)
  const projectedUpTo = () => positionOf(sql, FACTS)
  let sealedHour = Number.NaN

  const isDue = async (topic: string, hour: number, beganAt: string): Promise<boolean> =>
    hourOf(Date.parse((await lastSealedAt(ledger, topic)) ?? beganAt)) < hour

  const sealAll = async (hour: number): Promise<boolean> => {
    const [first] = await sql<{ at: string }>(firstFact.text, firstFact.values)
    // A ledger without facts has nothing to seal in this hour: facts that come now are sealed at its end.
    if (first === undefined) return true
    let isDone = true
    for (const topic of MANIFEST_TOPICS) {
      if (!(await isDue(topic, hour, first.at))) continue
      // Not sealed: the facts projection is rebuilt and has not reached the last manifest yet.
      if ((await sealManifest({ ledger, sql, projectedUpTo }, topic, NAME)).sealed === undefined) isDone = false
    }
    return isDone
  }

  /** Seals what is due; resolves to the time after which it has to be called again. */
  return async (): Promise<number> => {
    const hour = hourOf(ledger.world.now())
    if (hour !== sealedHour && (await sealAll(hour))) sealedHour = hour
    if (hour !== sealedHour) return RETRY_MS
    return Math.min(Math.max(0, (hour + 1) * everyMs - ledger.world.now()), WAIT_MAX_MS)
  }
}

export const manifestsFeed = (dependencies: ManifestDependencies): Feed => {
  const { database, ledger } = dependencies
  return {
    name: NAME,
    categories: ['manifest'],
    gatherMs: UNHURRIED_GATHER_MS,
    beginRun: async (epoch, signal) => ({
      after: await acquireCheckpoint(database.sql, NAME, epoch),
      processBatch: (_, position) => moveCheckpointAlone(database.sql, { name: NAME, position, epoch }),
      background: async () => {
        const sealDue = createSealer(dependencies)
        while (!signal.aborted) {
          await ledger.world.sleep(await sealDue(), signal)
        }
      },
    }),
  }
}
