import { Unavailable } from '../ports.ts'
import { takeCheckpoint } from './checkpoints.ts'
import {
  batchOf,
  isPassing,
  type Member,
  memberOf,
  type MemberParts,
  serveRequests,
  writeApart,
  writeTogether,
} from './members.ts'
import type { ReadModel } from './readModels.ts'
import type { Feed } from './run.ts'

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

/** Keeps the tables equal to the folds of their streams. `onLeftBehind` is told of a model that cannot go on, and why. */
export const projectorOf = (
  parts: MemberParts,
  models: readonly ReadModel[],
  onLeftBehind: (name: string, error: unknown) => void,
): Feed => {
  const { database, world } = parts
  let members: Member[] = []
  let epoch = 0n
  let retryAtMs = Number.POSITIVE_INFINITY
  let pauseMs = LEFT_BEHIND_MIN_MS
  let last: Promise<unknown> = Promise.resolve()
  /** What the loop writes and what an operator has replayed must not cross. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work, work)
    last = mine.catch(() => undefined)
    return mine
  }

  const leaveBehind = (member: Member, error: unknown): void => {
    onLeftBehind(member.model.name, error)
    members = members.filter(other => other !== member)
    if (retryAtMs < Number.POSITIVE_INFINITY) return
    retryAtMs = world.monotonicMs() + pauseMs
    pauseMs = Math.min(pauseMs * 2, LEFT_BEHIND_MAX_MS)
  }

  return {
    name: 'projector',
    categories: [...new Set(models.flatMap(({ categories }) => categories))],
    begin: async taken => {
      epoch = taken
      const positions = await Promise.all(models.map(({ name }) => takeCheckpoint(database.sql, name, epoch)))
      members = await Promise.all(
        models.map((model, index) => memberOf(database.sql, model, asPosition(positions[index] ?? 'start'))),
      )
      retryAtMs = Number.POSITIVE_INFINITY
      const earliest = members.reduce(
        (least, { position }) => (position < least ? position : least),
        members[0]?.position ?? -1n,
      )
      return earliest < 0n ? 'start' : earliest
    },
    take: (stored, position) =>
      inTurn(async () => {
        if (world.monotonicMs() >= retryAtMs)
          throw new Unavailable('database', 'none', new Error('A read model is tried again.'))
        const batch = batchOf(stored, position, epoch)
        try {
          await writeTogether(parts, members, batch)
        } catch (error) {
          if (isPassing(error)) throw error
          // Somebody cannot take this batch: each on its own finds out who, and what of it.
          for (const member of members) {
            const reason = await writeApart(parts, member, batch)
            if (reason !== undefined) leaveBehind(member, reason)
          }
        }
      }),
    alongside: async signal => {
      while (!signal.aborted) {
        await world.sleep(REQUESTS_POLL_MS, signal)
        for (const member of signal.aborted ? [] : members)
          if (member.parked.size > 0) await inTurn(() => serveRequests(parts, member, epoch))
      }
    },
  }
}

const asPosition = (checkpoint: bigint | 'start'): bigint => (checkpoint === 'start' ? -1n : checkpoint)
