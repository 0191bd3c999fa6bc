import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import {
  acquireCheckpoint,
  EpochSuperseded,
  fenceCheckpoint,
  moveCheckpoint,
  moveCheckpointAlone,
  type ResumePosition,
} from '../feeds/checkpoints.ts'
import { decode } from '../feeds/decode.ts'
import {
  pruneAndReadDiscarded,
  noteDiscarded,
  type DeadLetter,
  reasonOf,
  recordFailedReplay,
  referenceOf,
  release,
} from '../feeds/deadLetters.ts'
import { openParking, type Parking, storedEventOf, REQUESTS_POLL_MS } from '../feeds/parking.ts'
import { createSerialQueue } from '../lib/serialQueue.ts'
import type { Timer } from '../feeds/timer.ts'
import type { Run } from '../feeds/feedLoop.ts'
import type { Database, EventStore, StoredEvent, World } from '../ports.ts'
import type { OpenTasks, Origin } from './openTasks.ts'

/**
 * Reads the log for a process manager or for the exports. An event that this build cannot decode is parked with every later
 * event of its key, and all other keys continue (feeds/parking.ts).
 *
 * The checkpoint stays before the oldest open task, so a later run reads some events again. The result is the same:
 *
 *   before the first dead letter of its key    received again
 *   parked                                     left in the table
 *   discarded by an operator                   skipped, by this run too: its position is noted until the checkpoint has passed it
 *
 * The row of a dead letter that is replayed stays in the table until the task that it began has ended, because the
 * checkpoint may have passed the event: without the row a restart would lose the task.
 */

export type ConsumerDependencies = {
  readonly name: string
  readonly database: Database
  readonly store: Pick<EventStore, 'readStream'>
  readonly world: World
  readonly epoch: bigint
  /** Wakes the loop that calls `serve`. */
  readonly timer: Timer
}

export type Receiver = {
  readonly tasks: Pick<OpenTasks<unknown>, 'resumeAfter' | 'isOpenFor' | 'takeFinished'>
  readonly receive: (recorded: Recorded<AnyEvent>, origin: Origin) => void
}

export type EventConsumer = Pick<Run, 'after' | 'processBatch'> & {
  /**
   * Serves requests and deletes rows of ended tasks, every REQUESTS_POLL_MS at most. Sets the timer while some may be
   * left.
   */
  readonly serve: () => Promise<void>
  /**
   * Moves the checkpoint to the last batch once no task is open. Otherwise only the next event would: in a log without new ones,
   * as after a restore, the feed would look behind for as long.
   */
  readonly settle: () => Promise<void>
}

const parkingOf = (
  { name, database, store, world, epoch, timer }: ConsumerDependencies,
  { tasks, receive }: Receiver,
  queue: ReturnType<typeof createSerialQueue>,
  discarded: Set<bigint>,
): Promise<Parking> =>
  openParking({
    name,
    database,
    world,
    queue,
    timer,
    fence: fenceCheckpoint(name, epoch),
    replaysAtStart: true,
    replay: async parked => {
      receive(decode(await storedEventOf(store, parked)).recorded, { parked })
      return { ok: true }
    },
    discard: async (sql, event) => {
      await noteDiscarded(sql, event)
      // This run may receive the event after it has served the request.
      discarded.add(event.position)
    },
    isPending: tasks.isOpenFor,
  })

/** Passes the event to the receiver, or returns a row to park it. `after`: the position of the event before it. */
const receiveOne = ({ receive }: Receiver, parking: Parking, stored: StoredEvent, after: ResumePosition) => {
  const reference = referenceOf(stored)
  const parkedFrom = parking.firstPosition(reference.key)
  if (parkedFrom !== undefined && stored.position >= parkedFrom) return parking.rowsOf([reference])
  try {
    receive(decode(stored).recorded, { after })
    return []
  } catch (error) {
    const rows = parking.rowsOf([reference], { reason: reasonOf(error), attempts: 1 })
    parking.markParked(rows)
    return rows
  }
}

const releaseFinished = async ({ tasks }: Receiver, parking: Parking): Promise<void> => {
  const { done, failed } = tasks.takeFinished()
  if (done.length + failed.length === 0) return
  await parking.fenced(async sql => {
    for (const event of done) await release(sql, event)
    for (const { event, reason } of failed) await recordFailedReplay(sql, event, { reason, attempts: 1 })
  })
}

/** Long because its functions share the state of one consumer. */
export const openConsumer = async (dependencies: ConsumerDependencies, receiver: Receiver): Promise<EventConsumer> => {
  const { name, database, world, epoch, timer } = dependencies
  const after = await acquireCheckpoint(database.sql, name, epoch)
  const queue = createSerialQueue()
  const discarded = new Set(await pruneAndReadDiscarded(database.sql, name, after))
  const parking = await parkingOf(dependencies, receiver, queue, discarded)
  let seen = after
  let isSettled = true
  let serveAtMs = world.monotonicMs()
  let mayHaveParked = !parking.isEmpty()

  const receiveAll = (events: readonly StoredEvent[]): DeadLetter[] => {
    const rows: DeadLetter[] = []
    for (const stored of events) {
      if (!discarded.has(stored.position)) rows.push(...receiveOne(receiver, parking, stored, seen))
      seen = stored.position
    }
    return rows
  }

  return {
    after,
    processBatch: (events, position) =>
      queue(async () => {
        const rows = receiveAll(events)
        seen = position
        mayHaveParked ||= rows.length > 0
        const openAfter = receiver.tasks.resumeAfter()
        isSettled = openAfter === undefined
        const resumeAfter = openAfter ?? position
        if (rows.length === 0) return moveCheckpointAlone(database.sql, { name, position: resumeAfter, epoch })
        await parking.parkInTransaction(async sql => {
          await moveCheckpoint(sql, [name], resumeAfter, epoch)
          return rows
        })
      }),
    settle: async () => {
      if (isSettled || receiver.tasks.resumeAfter() !== undefined) return
      await queue(async () => {
        // A batch may have opened tasks meanwhile.
        if (receiver.tasks.resumeAfter() !== undefined) return
        isSettled = true
        try {
          await moveCheckpointAlone(database.sql, { name, position: seen, epoch })
        } catch (error) {
          // The next batch ends the run, as it always does; tasks that were begun may still be finished.
          if (!(error instanceof EpochSuperseded)) throw error
        }
      })
    },
    serve: async () => {
      if (!mayHaveParked) return
      if (world.monotonicMs() >= serveAtMs) {
        serveAtMs = world.monotonicMs() + REQUESTS_POLL_MS
        await queue(() => releaseFinished(receiver, parking))
        await parking.serveRequests()
      }
      timer.setAt(serveAtMs)
    },
  }
}
