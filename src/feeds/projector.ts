import { partsOf } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { type Database, type StoredEvent, Unavailable } from '../ports.ts'
import { moveCheckpoint, Replaced, takeCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import type { ReadModel } from './readModels.ts'
import type { Feed } from './run.ts'

/**
 * One reading of the log fills every read model: each event comes over the wire once and is decoded once. Each model has
 * a checkpoint of its own all the same. A new one begins at the beginning while the others wait for it to draw level, and
 * one that cannot go on is left behind while the others go on; from time to time it is tried again.
 *
 *   following ── its write fails ──▶ left behind ── the pause is over: the feed begins anew ──▶ following
 */

const LEFT_BEHIND_MIN_MS = 5_000
const LEFT_BEHIND_MAX_MS = 300_000

type Member = { readonly model: ReadModel; position: bigint }
type Batch = {
  readonly stored: readonly StoredEvent[]
  /** Decodes once, whoever asks. What cannot be decoded is the trouble of those alone who have to do with it. */
  readonly decoded: (stored: StoredEvent) => Recorded<AnyEvent>
  readonly position: bigint
  readonly epoch: bigint
}

const batchOf = (stored: readonly StoredEvent[], position: bigint, epoch: bigint): Batch => {
  const known = new Map<StoredEvent, Recorded<AnyEvent>>()
  const decoded = (event: StoredEvent): Recorded<AnyEvent> => {
    const recorded = known.get(event) ?? decode(event).recorded
    known.set(event, recorded)
    return recorded
  }
  return { stored, decoded, position, epoch }
}

/** The events of the batch that the member has not seen yet. */
const newsFor = ({ model, position }: Member, { stored, decoded }: Batch): Recorded<AnyEvent>[] =>
  stored
    .filter(event => event.position > position && model.categories.includes(partsOf(event.stream).category))
    .map(decoded)

/** Rows and checkpoints move in one transaction, for all of the given members or for none. */
const write = async (database: Database, members: readonly Member[], batch: Batch): Promise<void> => {
  const behind = members.filter(({ position }) => position < batch.position)
  if (behind.length === 0) return
  await database.transaction(async sql => {
    // The checkpoints go first: their row locks are where a process that was replaced meets the one that replaced it.
    const names = behind.map(({ model }) => model.name)
    await moveCheckpoint(sql, names, batch.position, batch.epoch)
    for (const member of behind) {
      const news = newsFor(member, batch)
      if (news.length > 0) await member.model.write(sql, news)
    }
  })
  for (const member of behind) member.position = batch.position
}

const isPassing = (error: unknown): boolean => error instanceof Unavailable || error instanceof Replaced

/** Keeps the tables equal to the folds of their streams. `onLeftBehind` is told of a model that cannot go on, and why. */
export const projectorOf = (
  database: Database,
  models: readonly ReadModel[],
  onLeftBehind: (name: string, error: unknown) => void,
): Feed => {
  let members: Member[] = []
  let retryAtMs = Number.POSITIVE_INFINITY
  let pauseMs = LEFT_BEHIND_MIN_MS

  const leaveBehind = (member: Member, error: unknown): void => {
    onLeftBehind(member.model.name, error)
    members = members.filter(other => other !== member)
    if (retryAtMs < Number.POSITIVE_INFINITY) return
    retryAtMs = performance.now() + pauseMs
    pauseMs = Math.min(pauseMs * 2, LEFT_BEHIND_MAX_MS)
  }
  /** Somebody cannot take this batch: each on its own finds out who. */
  const writeApart = async (batch: Batch): Promise<void> => {
    for (const member of members) {
      try {
        await write(database, [member], batch)
      } catch (error) {
        if (isPassing(error)) throw error
        leaveBehind(member, error)
      }
    }
  }
  return {
    name: 'projector',
    categories: [...new Set(models.flatMap(({ categories }) => categories))],
    begin: async epoch => {
      const positions = await Promise.all(models.map(({ name }) => takeCheckpoint(database.sql, name, epoch)))
      members = models.map((model, index) => ({ model, position: asPosition(positions[index] ?? 'start') }))
      retryAtMs = Number.POSITIVE_INFINITY
      const earliest = members.reduce(
        (least, { position }) => (position < least ? position : least),
        members[0]?.position ?? -1n,
      )
      return earliest < 0n ? 'start' : earliest
    },
    take: async (stored, position, epoch) => {
      if (performance.now() >= retryAtMs)
        throw new Unavailable('database', 'none', new Error('A read model is tried again.'))
      const batch = batchOf(stored, position, epoch)
      try {
        await write(database, members, batch)
      } catch (error) {
        if (isPassing(error)) throw error
        await writeApart(batch)
      }
    },
  }
}

const asPosition = (checkpoint: bigint | 'start'): bigint => (checkpoint === 'start' ? -1n : checkpoint)
