import type { Recorded } from '../../../streams/envelope.ts'
import type { OperationId } from '../../../streams/ids.ts'
import type { FileSummary, OperationCommand, OperationEvent } from '../../../streams/operation/index.ts'
import { type KindOf, operationEntity } from '../../commands/entities.ts'
import { exportsWithErased, mayHaveErased } from './exportErasures.ts'
import { deleteAttempt, deleteEarlier, deleteFile, strayFiles } from './exportFiles.ts'
import { type Handled, handle } from '../../commands/commandHandler.ts'
import type { Feed } from '../../feeds/feedLoop.ts'
import { createTimer, type Timer } from '../../feeds/timer.ts'
import { Unavailable, unlessUnavailable } from '../../ports.ts'
import { type ExportAttempt, type ExportDependencies, writeExportFile, untilReflected } from './writeFile.ts'
import { exportedReadModels } from './exportedReadModels.ts'
import { createExpiry, type Expiry } from './expiry.ts'
import { createOneByOne } from './oneByOne.ts'
import { type Receiver, openConsumer } from '../eventConsumer.ts'
import { createTenantScheduler } from '../fairScheduling.ts'
import { createOpenTasks, type OpenTask } from '../openTasks.ts'
import { contextOf } from '../processManager.ts'

/**
 * Writes the files of exports. All state is in the log: the checkpoint stays before the oldest open export, so a
 * restart finds every one of them again, and makes a new attempt from a new snapshot.
 *
 *   open ─▶ running ─▶ ended, by an event of the operation: completed, failed, cancelled or expired
 *      ▲        │
 *      └────────┘  a dependency did not answer, or the attempt failed: tried again after RETRY_MS
 *
 * A cancellation is an event of the log too, and ends the running attempt within a batch of rows.
 */

export const NAME = 'exports'
const AT_ONCE_MAX = 2
/** One is left for another tenant, whose export begins at once. */
const AT_ONCE_OF_TENANT_MAX = AT_ONCE_MAX - 1
const TICK_MS = 100
const RETRY_MS = 1_000
/** A file that may have an erased text is not served any more (exportContent.ts); this deletes it. */
const WITHDRAW_EVERY_MS = 10_000
const WITHDRAWN_AT_ONCE = 100
const SWEEP_EVERY_MS = 60_000
const FAILURE_CODE = 'internal_error'

type ExportRequest = Recorded<Extract<OperationEvent, { type: 'ExportRequested' }>>
type Job = OpenTask<ExportRequest>

type Sent = Handled<KindOf<typeof operationEntity>>
type Send = (command: OperationCommand) => Promise<Sent>

/** Event ids are derived from `run`: a repetition in the same run appends nothing, one in another run does. */
const sender = ({ ledger }: ExportDependencies, recorded: Recorded<OperationEvent>, run: string): Send => {
  const id = recorded.id as OperationId
  return command => {
    const context = { ...contextOf(NAME, recorded, ledger.world), commandId: `${NAME}/${run}/${command.type}` }
    return handle(ledger, operationEntity, id, { command, context })
  }
}

const RUN_BYTES = 16
const newRun = ({ ledger: { world } }: ExportDependencies): string =>
  Buffer.from(world.randomBytes(RUN_BYTES)).toString('hex')

const OPEN_STATUSES: ReadonlySet<string> = new Set(['none', 'pending', 'running'])
const hasEnded = (sent: Sent): boolean => sent.ok && !OPEN_STATUSES.has(sent.state.status)
/** Texts may be erased while a file is written. After this many files in a row it is left to be withdrawn. */
const FILES_PER_ATTEMPT_MAX = 3

/** Writes the file of the attempt, and writes it again when a text that it may have was erased meanwhile. */
const writeWithoutErased = async (
  dependencies: ExportDependencies,
  attempt: ExportAttempt,
  signal: AbortSignal,
): Promise<FileSummary> => {
  const { sql } = dependencies.database
  for (let file = 1; ; file++) {
    const summary = await writeExportFile(dependencies, attempt, signal)
    const isLast = file === FILES_PER_ATTEMPT_MAX
    if (isLast || !(await mayHaveErased(sql, { ...attempt, resource: attempt.terms.resource }))) return summary
    await deleteAttempt(sql, attempt)
  }
}

/**
 * Makes one attempt, unless the operation has ended. Resolves to whether it has ended now. It has not if its read model
 * is behind, or if a newer attempt has begun meanwhile: that is the attempt of a worker that was replaced and may not
 * complete it. Then the export is tried again. Throws Unavailable, or the reason of the aborted signal.
 */
const attemptOnce = async (dependencies: ExportDependencies, request: ExportRequest, signal: AbortSignal) => {
  const { event, id, position, metadata } = request
  if (!(await untilReflected(dependencies, exportedReadModels[event.data.resource], position, signal))) return false
  const run = newRun(dependencies)
  const send = sender(dependencies, request, run)
  const started = await send({ type: 'StartAttempt', run })
  if (!started.ok) throw new Error(`StartAttempt of ${id} was refused.`)
  if (started.state.status !== 'running' || started.state.run !== run) return hasEnded(started)
  const { attempt, terms } = started.state
  try {
    await deleteEarlier(dependencies.database.sql, { id, attempt })
    const summary = await writeWithoutErased(dependencies, { id, attempt, tenant: metadata.tenant, terms }, signal)
    return hasEnded(await send({ type: 'CompleteExport', run, ...summary }))
  } catch (error) {
    if (signal.aborted || error instanceof Unavailable) throw error
    dependencies.logger.error({ operation: id, attempt, error }, 'export attempt failed')
    await send({ type: 'FailAttempt', run, code: FAILURE_CODE })
    throw error
  }
}

/** Sends the command, and deletes the file when the operation is expired. */
const expireBy = async (dependencies: ExportDependencies, id: string, command: OperationCommand): Promise<void> => {
  const { database, ledger } = dependencies
  const first = await ledger.aggregates.first(operationEntity, id as OperationId)
  if (first === undefined) return
  const expired = await sender(dependencies, first, newRun(dependencies))(command)
  if (expired.ok && expired.state.status === 'expired') await deleteFile(database.sql, id)
}

const withdrawingErased = (dependencies: ExportDependencies): Periodic['work'] => {
  const { database, ledger, logger } = dependencies
  const oneByOne = createOneByOne(ledger.world, logger)
  return async () =>
    oneByOne(await exportsWithErased(database.sql, WITHDRAWN_AT_ONCE), id =>
      expireBy(dependencies, id, { type: 'WithdrawFile' }),
    )
}

const deleteStrayFiles = async ({ database: { sql } }: ExportDependencies): Promise<void> => {
  for (const stray of await strayFiles(sql)) await deleteAttempt(sql, stray)
}

type Periodic = { readonly everyMs: number; readonly work: (dependencies: ExportDependencies) => Promise<void> }

/** Does the work once in a period; after Unavailable again in the next one. */
const periodically = (dependencies: ExportDependencies, timer: Timer, { everyMs, work }: Periodic) => {
  const { world } = dependencies.ledger
  let dueAtMs = 0
  return async (): Promise<void> => {
    if (world.monotonicMs() >= dueAtMs) {
      dueAtMs = world.monotonicMs() + everyMs
      await unlessUnavailable(work(dependencies))
    }
    timer.setAt(dueAtMs)
  }
}

const isRequest = (recorded: Recorded<OperationEvent>): recorded is ExportRequest =>
  recorded.event.type === 'ExportRequested'

const ENDING_EVENTS: ReadonlySet<OperationEvent['type']> = new Set([
  'ExportCompleted',
  'OperationFailed',
  'OperationCancelled',
  'OperationExpired',
])

type Jobs = Receiver & {
  /** Starts what is due and sets the timer for the rest. */
  readonly startDue: (stop: AbortSignal) => void
  /** Resolves when no attempt is running any more. */
  readonly allEnded: () => Promise<unknown>
}

/** Long because its functions share the tasks and the attempts. */
const createJobs = (dependencies: ExportDependencies, timer: Timer, expiry: Expiry): Jobs => {
  const tasks = createOpenTasks<ExportRequest>(dependencies.ledger.world, timer)
  // An attempt may be running for a moment after its task has ended.
  const running = new Map<Job, Promise<void>>()
  const scheduler = createTenantScheduler<Job>(({ work }) => work.metadata.tenant, AT_ONCE_OF_TENANT_MAX)

  const run = async (job: Job, stop: AbortSignal): Promise<void> => {
    try {
      if (await attemptOnce(dependencies, job.work, AbortSignal.any([stop, job.ended]))) tasks.end(job.key)
      else tasks.postpone(job.key, RETRY_MS)
    } catch {
      // Only an event ends an export. Without one it is tried again, whatever the error of this attempt was.
      tasks.postpone(job.key, RETRY_MS)
    }
    running.delete(job)
  }

  return {
    tasks,
    receive: (event, origin) => {
      const recorded = event as Recorded<OperationEvent>
      if (isRequest(recorded)) {
        tasks.begin(recorded.id, { work: recorded, graceMs: 0 }, origin)
        expiry.expect(recorded.event.data.expires_at)
      }
      if (ENDING_EVENTS.has(recorded.event.type)) tasks.end(recorded.id)
    },
    startDue: stop => {
      tasks.setTimer()
      while (running.size < AT_ONCE_MAX) {
        const due = tasks.due().filter(job => !running.has(job))
        const next = scheduler.next(due, [...running.keys()])
        if (next === undefined) return
        running.set(next, run(next, stop))
      }
    },
    allEnded: () => Promise.all(running.values()),
  }
}

export const exportsFeed = (dependencies: ExportDependencies): Feed => ({
  name: NAME,
  categories: ['operation'],
  beginRun: async (epoch, signal) => {
    const { database, ledger } = dependencies
    const { store, world } = ledger
    const timer = createTimer(world)
    const expiry = createExpiry(dependencies, timer, (id, at) =>
      expireBy(dependencies, id, { type: 'ExpireOperation', at }),
    )
    const jobs = createJobs(dependencies, timer, expiry)
    const { after, processBatch, serve } = await openConsumer(
      { name: NAME, database, store, world, epoch, timer },
      jobs,
    )
    const regular = [
      serve,
      expiry.expireOverdue,
      periodically(dependencies, timer, { everyMs: SWEEP_EVERY_MS, work: deleteStrayFiles }),
      periodically(dependencies, timer, { everyMs: WITHDRAW_EVERY_MS, work: withdrawingErased(dependencies) }),
    ]
    return { after, processBatch, background: () => runJobs({ jobs, regular, timer }, signal) }
  },
})

type Running = { readonly jobs: Jobs; readonly regular: readonly (() => Promise<void>)[]; readonly timer: Timer }

const runJobs = async ({ jobs, regular, timer }: Running, signal: AbortSignal): Promise<void> => {
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  try {
    while (!signal.aborted) {
      jobs.startDue(either)
      for (const work of regular) await work()
      await timer.wait(signal, TICK_MS)
    }
  } finally {
    stop.abort()
    await jobs.allEnded()
  }
}
