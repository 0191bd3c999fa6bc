import type { EventStore, World } from '../ports.ts'
import type { SealedLeaf } from './leaves.ts'

/**
 * Whether the log still has the events that were sealed. A log that was restored from an older backup, or cut, has not, and
 * nothing may be signed over it until an operator has accepted that.
 */

/** The message says what the log lacks, and the command that accepts it. */
export class SealedEventsLost extends Error {
  constructor(found: string) {
    super(
      `${found} Nothing is signed any more. Compare with npm run ledger -- verify; restore the event store, or accept the ` +
        'present log with npm run ledger -- evidence accept --reason TEXT, which is an audit record.',
    )
    this.name = 'SealedEventsLost'
  }
}

type Reader = Pick<EventStore, 'readStream' | 'head'>

/** A node that follows the leader may be behind for a moment. */
const LAG_ATTEMPTS = 5
const LAG_PAUSE_MS = 1_000

/** Whether the log reaches the position; asked again for a while, since a follower may be behind. */
export const reaches = async (store: Reader, position: bigint, world: Pick<World, 'sleep'>): Promise<boolean> => {
  for (let attempts = 1; ; attempts += 1) {
    if ((await store.head()) >= position) return true
    if (attempts === LAG_ATTEMPTS) return false
    await world.sleep(LAG_PAUSE_MS)
  }
}

export const isDeletedStream = (error: unknown): boolean =>
  error instanceof Error && 'type' in error && error.type === 'stream-deleted'

const isThere = async (store: Reader, { stream, revision, eventId }: SealedLeaf): Promise<boolean> => {
  try {
    for await (const event of store.readStream(stream, { from: revision, limit: 1 }))
      return event.revision === revision && event.id === eventId
  } catch (error) {
    if (!isDeletedStream(error)) throw error
  }
  return false
}

/**
 * The setting of its stream by which the store may remove the event, in a scavenge; undefined where there is none. An event
 * that is absent for this reason says nothing about the rest of the log.
 */
export const removalOf = async (
  store: Reader,
  { stream, revision }: Pick<SealedLeaf, 'stream' | 'revision'>,
): Promise<string | undefined> => {
  try {
    // A deleted stream is found by reading it.
    for await (const _ of store.readStream(stream, { limit: 1 })) break
    for await (const { data } of store.readStream(`$$${stream}`, { direction: 'backwards', limit: 1 })) {
      const before = data['$tb']
      if (typeof before === 'number' && BigInt(before) > revision) return `truncated before revision ${before}`
      for (const name of ['$maxCount', '$maxAge'] as const) if (data[name] !== undefined) return `limited by ${name}`
    }
  } catch (error) {
    if (isDeletedStream(error)) return 'deleted'
    throw error
  }
  return undefined
}

/** Throws SealedEventsLost unless the log has the newest of these leaves that the store had no right to remove. */
export const checkContinues = async (
  store: Reader,
  newestFirst: readonly SealedLeaf[],
  world: Pick<World, 'sleep'>,
): Promise<void> => {
  const [newest] = newestFirst
  if (newest === undefined) return
  if (!(await reaches(store, newest.position, world)))
    throw new SealedEventsLost(
      `The log ends at position ${await store.head()}, and events up to ${newest.position} are sealed: it was truncated, or restored from an older backup.`,
    )
  for (const leaf of newestFirst) {
    if (await isThere(store, leaf)) return
    if ((await removalOf(store, leaf)) === undefined)
      throw new SealedEventsLost(
        `The sealed event ${leaf.eventId} (revision ${leaf.revision} of ${leaf.stream}) is not in the log: it was replaced, or restored from an older backup.`,
      )
  }
}
