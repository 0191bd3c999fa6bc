import { partsOf } from '../../streams/aggregate.ts'
import { Unavailable } from '../ports.ts'
import { acquireCheckpoint, type ResumePosition } from './checkpoints.ts'
import { isTransient, serveRegularly } from './parking.ts'
import { decode } from './decode.ts'
import { preparedEvents } from './preparedEvents.ts'
import type { ReadModel } from './readModel.ts'
import {
  type OpenReadModel,
  openReadModel,
  type ReadModelWriterDependencies,
  writeAlone,
  writeTogether,
} from './readModelWriter.ts'
import { backoffMs } from '../lib/time.ts'
import { createSerialQueue } from '../lib/serialQueue.ts'
import { createTimer, type Timer } from './timer.ts'
import type { Feed, Run } from './feedLoop.ts'

/**
 * All read models share one subscription, so each event is transferred and decoded once. Each has a checkpoint of its
 * own: the others wait for one that reads the log from its start, and leave one behind that cannot continue, until the
 * next run after a pause. An event that cannot be decoded or written is parked instead (readModelWriter.ts).
 */

/** Larger than in other feeds: a row is written once for all events of its stream in a batch. */
const CATCH_UP_BATCH_MAX = 4_000
const LEFT_BEHIND_MIN_MS = 5_000
const LEFT_BEHIND_MAX_MS = 300_000

/** When a model that was left behind is tried again, in a new run. The pauses grow from run to run. */
const createRetryTimes = ({ world }: ReadModelWriterDependencies) => {
  let failures = 0
  return (): number => world.monotonicMs() + backoffMs(failures++, LEFT_BEHIND_MIN_MS, LEFT_BEHIND_MAX_MS)
}

const asPosition = (checkpoint: ResumePosition): bigint => (checkpoint === 'start' ? -1n : checkpoint)

const earliestOf = (readModels: readonly OpenReadModel[]): ResumePosition => {
  const positions = readModels.map(({ position }) => position)
  const earliest = positions.reduce((least, position) => (position < least ? position : least), positions[0] ?? -1n)
  return earliest < 0n ? 'start' : earliest
}

type OnLeftBehind = (name: string, error: unknown) => void

/**
 * `onLeftBehind`: a model cannot continue. `onServed`: requests of operators were served, and may have changed rows.
 */
export const projectorOf = (
  dependencies: ReadModelWriterDependencies,
  models: readonly ReadModel[],
  onLeftBehind: OnLeftBehind,
  onServed: () => void = () => undefined,
): Feed => {
  const { database } = dependencies
  const pauseUntilMs = createRetryTimes(dependencies)
  return {
    name: 'projector',
    categories: [...new Set(models.flatMap(({ categories }) => categories))],
    batchMax: CATCH_UP_BATCH_MAX,
    beginRun: async (epoch, signal) => {
      // Writes of the loop and replays of an operator must not cross.
      const queue = createSerialQueue()
      const timer = createTimer(dependencies.world)
      const checkpoints = await Promise.all(models.map(({ name }) => acquireCheckpoint(database.sql, name, epoch)))
      const readModels = await Promise.all(
        models.map((model, index) =>
          openReadModel(dependencies, model, asPosition(checkpoints[index] ?? 'start'), { epoch, queue, timer }),
        ),
      )
      return runOf(dependencies, { readModels, epoch, signal, queue, timer, pauseUntilMs, onLeftBehind, onServed })
    },
  }
}

type RunDependencies = {
  readonly readModels: readonly OpenReadModel[]
  readonly epoch: bigint
  readonly signal: AbortSignal
  readonly queue: ReturnType<typeof createSerialQueue>
  readonly timer: Timer
  readonly pauseUntilMs: () => number
  readonly onLeftBehind: OnLeftBehind
  readonly onServed: () => void
}

/** Long because its functions share the state of the run. */
const runOf = (
  dependencies: ReadModelWriterDependencies,
  { readModels: all, epoch, signal, queue, timer, pauseUntilMs, onLeftBehind, onServed }: RunDependencies,
): Run => {
  const { world } = dependencies
  const { resultOf: decoded, prepare, forget } = preparedEvents(stored => decode(stored).recorded)
  let following = all
  let retryAtMs = Number.POSITIVE_INFINITY

  const leaveBehind = (readModel: OpenReadModel, error: unknown): void => {
    onLeftBehind(readModel.model.name, error)
    following = following.filter(other => other !== readModel)
    if (retryAtMs === Number.POSITIVE_INFINITY) retryAtMs = pauseUntilMs()
  }

  const served = () =>
    following.map(readModel => ({
      isEmpty: readModel.parking.isEmpty,
      serveRequests: async () => {
        if (await readModel.mayReplay(readModel.position)) await readModel.parking.serveRequests()
      },
    }))

  return {
    after: earliestOf(all),
    readsLater: true,
    processBatch: (stored, position, begun) =>
      queue(async () => {
        if (world.monotonicMs() >= retryAtMs)
          throw new Unavailable('database', { effect: 'none', cause: new Error('A read model is tried again.') })
        const streams = stored.map(({ stream }) => partsOf(stream))
        const batch = { stored, streams, decoded, position, epoch, begun }
        try {
          await writeTogether(dependencies, following, batch, 'copied')
        } catch (error) {
          if (isTransient(error)) throw error
          // Some model cannot take this batch. Each is written alone, which shows which one, and which event is the cause.
          for (const readModel of following) {
            const reason = await writeAlone(dependencies, readModel, batch)
            if (reason !== undefined) leaveBehind(readModel, reason)
          }
        }
        forget(stored)
      }),
    prepare,
    background: () => serveRegularly(served, timer, signal, onServed),
  }
}
