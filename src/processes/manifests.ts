import { firstFact } from '../../projections/facts/queries.ts'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import type { Ledger } from '../commands/handle.ts'
import { FACTS, lastSealedAt, sealManifest } from '../commands/manifests.ts'
import { moveCheckpoint, positionOf, takeCheckpoint } from '../feeds/checkpoints.ts'
import type { Feed } from '../feeds/subscriptionLoop.ts'
import type { Database } from '../ports.ts'

/**
 * At the end of each hour every topic is sealed: from behind its last manifest, up to where the facts have got.
 *
 *   due     the last manifest, or if there is none the ledger's first fact, is of an earlier hour
 *   sealed  a manifest of this hour is in the log, by this process, another one or an operator
 *
 * The log says which it is, so that a restart forgets nothing: after hours of downtime one manifest covers them all. A
 * quiet hour is sealed too, with no facts in it: who reads the topic can tell "there was nothing" from "nobody looked".
 * Two processes cannot seal the same facts, since both append at the revision that they have seen.
 */

const NAME = 'manifests'
const TICK_MS = 1_000

export type ManifestDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  /** An hour. Its ends are those of the clock, in UTC. */
  readonly everyMs: number
}

const createSealing = ({ database: { sql }, ledger, everyMs }: ManifestDependencies) => {
  const hourOf = (timeMs: number): number => Math.floor(timeMs / everyMs)
  const reached = () => positionOf(sql, FACTS)
  let sealedHour = Number.NaN

  const isDue = async (topic: string, hour: number, beganAt: string): Promise<boolean> =>
    hourOf(Date.parse((await lastSealedAt(ledger, topic)) ?? beganAt)) < hour

  const sealAll = async (hour: number): Promise<boolean> => {
    const [first] = await sql<{ at: string }>(firstFact.text, firstFact.values)
    // Of a ledger without facts there is nothing to tell. Those that come now are of this hour.
    if (first === undefined) return true
    let isDone = true
    for (const topic of MANIFEST_TOPICS) {
      if (!(await isDue(topic, hour, first.at))) continue
      // The facts have not even got to the last manifest: they will, and then there is something to seal.
      if ((await sealManifest({ ledger, sql, projectedUpTo: reached }, topic, NAME)).sealed === undefined)
        isDone = false
    }
    return isDone
  }

  return async (): Promise<void> => {
    const hour = hourOf(ledger.world.now())
    if (hour !== sealedHour && (await sealAll(hour))) sealedHour = hour
  }
}

export const manifestsFeed = (parts: ManifestDependencies): Feed => {
  const { database, ledger } = parts
  return {
    name: NAME,
    categories: ['manifest'],
    beginRun: async (epoch, signal) => ({
      after: await takeCheckpoint(database.sql, NAME, epoch),
      processBatch: (_, position) => moveCheckpoint(database.sql, [NAME], position, epoch),
      background: async () => {
        const sealDue = createSealing(parts)
        while (!signal.aborted) {
          await sealDue()
          await ledger.world.sleep(TICK_MS, signal)
        }
      },
    }),
  }
}
