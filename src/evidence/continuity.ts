import { SECOND_MS } from '../lib/time.ts'
import type { EventStore, Sql, StoredEvent, World } from '../ports.ts'
import { signedBefore } from './headStore.ts'
import type { IndexedLeaf } from './leaves.ts'

/** A restored or cut log lacks signed events: nothing may be signed over it until an operator has accepted that. */

/** The message says what the log lacks, and the command that accepts it. */
export class SignedEventsLost extends Error {
  constructor(finding: string) {
    super(
      `${finding} Nothing is signed any more. Compare with npm run ledger -- verify; restore the event store, or accept the ` +
        'present log with npm run ledger -- evidence accept --reason TEXT, which is an audit record.',
    )
    this.name = 'SignedEventsLost'
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

const isThere = async (store: Reader, { stream, revision, eventId }: IndexedLeaf): Promise<boolean> => {
  try {
    for await (const event of store.readStream(stream, { from: revision, limit: 1 }))
      return event.revision === revision && event.id === eventId
  } catch (error) {
    if (!isDeletedStream(error)) throw error
  }
  return false
}

/** Sources of the truth of an excuse. */
export type Excuses = {
  readonly store: Reader
  readonly sql: Sql
  readonly world: Pick<World, 'now'>
}

const lastRevision = async (store: Reader, stream: string): Promise<bigint | undefined> => {
  for await (const { revision } of store.readStream(stream, { direction: 'backwards', limit: 1 })) return revision
  return undefined
}

/** The store keeps the last events of the stream: an event among them was not removed for their number. */
const isBeyondCount = async ({ store }: Excuses, { stream, revision }: IndexedLeaf, count: unknown) => {
  const last = await lastRevision(store, stream)
  return last !== undefined && Number.isSafeInteger(count) && revision <= last - BigInt(count as number)
}

/** The event is older than the first head that has it. */
const isBeyondAge = async ({ sql, world }: Excuses, { index }: IndexedLeaf, seconds: unknown): Promise<boolean> => {
  const signedAtMs = await signedBefore(sql, index)
  return signedAtMs !== undefined && typeof seconds === 'number' && signedAtMs + seconds * SECOND_MS < world.now()
}

const reasonIn = async (excuses: Excuses, leaf: IndexedLeaf, data: StoredEvent['data']) => {
  const { $tb: before, $maxCount: count, $maxAge: age } = data
  if (Number.isSafeInteger(before) && BigInt(before as number) > leaf.revision)
    return `truncated before revision ${Number(before)}`
  if (count !== undefined && (await isBeyondCount(excuses, leaf, count))) return `limited by $maxCount ${Number(count)}`
  if (age !== undefined && (await isBeyondAge(excuses, leaf, age))) return `limited by $maxAge ${Number(age)} s`
  return undefined
}

/**
 * The stream's setting by which a scavenge may have removed the event; undefined where none explains it. An absent
 * event says nothing about the rest of the log then.
 */
export const removalOf = async (excuses: Excuses, leaf: IndexedLeaf): Promise<string | undefined> => {
  const { store } = excuses
  try {
    // A deleted stream is found by reading it.
    for await (const _ of store.readStream(leaf.stream, { limit: 1 })) break
    for await (const { data } of store.readStream(`$$${leaf.stream}`, { direction: 'backwards', limit: 1 }))
      return await reasonIn(excuses, leaf, data)
  } catch (error) {
    if (isDeletedStream(error)) return 'deleted'
    throw error
  }
  return undefined
}

/** Throws SignedEventsLost unless the log has the newest of these leaves that the store had no right to remove. */
export const checkContinues = async (
  excuses: Excuses & { readonly world: Pick<World, 'sleep'> },
  newestFirst: readonly IndexedLeaf[],
): Promise<void> => {
  const { store, world } = excuses
  const [newest] = newestFirst
  if (newest === undefined) return
  if (!(await reaches(store, newest.position, world)))
    throw new SignedEventsLost(
      `The log ends at position ${await store.head()}, and events up to ${newest.position} are signed: it was truncated, or restored from an older backup.`,
    )
  for (const leaf of newestFirst) {
    if (await isThere(store, leaf)) return
    if ((await removalOf(excuses, leaf)) === undefined)
      throw new SignedEventsLost(
        `The signed event ${leaf.eventId} (revision ${leaf.revision} of ${leaf.stream}) is not in the log: it was replaced, or restored from an older backup.`,
      )
  }
}
