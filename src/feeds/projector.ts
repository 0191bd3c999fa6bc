import { Unavailable } from '../ports.ts'
import { takeCheckpoint } from './checkpoints.ts'
import {
  batchOf,
  isPassing,
  type OpenReadModel,
  openReadModel,
  type ReadModelWriterDependencies,
  writeApart,
  writeTogether,
} from './readModelWriter.ts'
import type { ReadModel } from './readModels.ts'
import { serveRequests } from './deadLetterRequests.ts'
import type { Feed, Run } from './subscriptionLoop.ts'
import { createTurns } from './serialQueue.ts'

/**
 * One reading of the log fills every read model: each event comes over the wire once and is decoded once. Each model has
 * a checkpoint of its own all the same. A new one begins at the beginning while the others wait for it to draw level, and
 * one that cannot go on is left behind while the others go on; from time to time it is tried again.
 *
 *   following ── its write fails ──▶ left behind ── the pause is over: the feed begins anew ──▶ following
 *
 * An event that cannot be read or written is no reason to be left behind: it is parked with its key (members.ts).
 */

const LEFT_BEHIND_MIN_MS = 5_000
const LEFT_BEHIND_MAX_MS = 300_000
const REQUESTS_POLL_MS = 500

/** How long a model is left behind. It grows from run to run, since each trial is a run of its own. */
const createPause = ({ world }: ReadModelWriterDependencies) => {
  let pauseMs = LEFT_BEHIND_MIN_MS
  return (): number => {
    const untilMs = world.monotonicMs() + pauseMs
    pauseMs = Math.min(pauseMs * 2, LEFT_BEHIND_MAX_MS)
    return untilMs
  }
}

const membersOf = async (
  { database: { sql } }: ReadModelWriterDependencies,
  models: readonly ReadModel[],
  epoch: bigint,
) => {
  const positions = await Promise.all(models.map(({ name }) => takeCheckpoint(sql, name, epoch)))
  return Promise.all(models.map((model, index) => openReadModel(sql, model, asPosition(positions[index] ?? 'start'))))
}

const asPosition = (checkpoint: bigint | 'start'): bigint => (checkpoint === 'start' ? -1n : checkpoint)

const earliestOf = (members: readonly OpenReadModel[]): bigint | 'start' => {
  const positions = members.map(({ position }) => position)
  const earliest = positions.reduce((least, position) => (position < least ? position : least), positions[0] ?? -1n)
  return earliest < 0n ? 'start' : earliest
}

/** Keeps the tables equal to the folds of their streams. `onLeftBehind` is told of a model that cannot go on, and why. */
export const projectorOf = (
  parts: ReadModelWriterDependencies,
  models: readonly ReadModel[],
  onLeftBehind: (name: string, error: unknown) => void,
): Feed => {
  const pauseUntilMs = createPause(parts)
  return {
    name: 'projector',
    categories: [...new Set(models.flatMap(({ categories }) => categories))],
    beginRun: async (epoch, signal) => {
      const members = await membersOf(parts, models, epoch)
      return runOf(parts, { members, epoch, signal, pauseUntilMs, onLeftBehind })
    },
  }
}

type Begun = {
  readonly members: readonly OpenReadModel[]
  readonly epoch: bigint
  readonly signal: AbortSignal
  readonly pauseUntilMs: () => number
  readonly onLeftBehind: (name: string, error: unknown) => void
}

const runOf = (
  parts: ReadModelWriterDependencies,
  { members: all, epoch, signal, pauseUntilMs, onLeftBehind }: Begun,
): Run => {
  const { world } = parts
  // One after the other: writes of the loop and replays of an operator must not cross.
  const inTurn = createTurns()
  let members = all
  let retryAtMs = Number.POSITIVE_INFINITY

  const leaveBehind = (member: OpenReadModel, error: unknown): void => {
    onLeftBehind(member.model.name, error)
    members = members.filter(other => other !== member)
    if (retryAtMs === Number.POSITIVE_INFINITY) retryAtMs = pauseUntilMs()
  }

  return {
    after: earliestOf(all),
    processBatch: (stored, position) =>
      inTurn(async () => {
        if (world.monotonicMs() >= retryAtMs)
          throw new Unavailable('database', 'none', new Error('A read model is tried again.'))
        const batch = batchOf(stored, position, epoch)
        try {
          await writeTogether(parts, members, batch)
        } catch (error) {
          if (isPassing(error)) throw error
          // One of them cannot take this batch: each on its own finds out which, and what of it.
          for (const member of members) {
            const reason = await writeApart(parts, member, batch)
            if (reason !== undefined) leaveBehind(member, reason)
          }
        }
      }),
    background: async () => {
      while (!signal.aborted) {
        await world.sleep(REQUESTS_POLL_MS, signal)
        for (const member of signal.aborted ? [] : members)
          if (member.parked.size > 0) await inTurn(() => serveRequests(parts, member, epoch))
      }
    },
  }
}
