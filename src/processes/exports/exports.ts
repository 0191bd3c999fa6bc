import { overdueOperations } from '../../../projections/operations/queries.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import type { OperationId } from '../../../streams/ids.ts'
import type { OperationCommand, OperationEvent } from '../../../streams/operation/index.ts'
import { type KindOf, operationEntity } from '../../commands/entities.ts'
import { deleteAttempt, deleteEarlier, deleteFile, strayFiles } from '../../commands/exportFiles.ts'
import { type Handled, handle } from '../../commands/handle.ts'
import type { Feed } from '../../feeds/subscriptionLoop.ts'
import { Unavailable } from '../../ports.ts'
import { type ExportDependencies, makeFile, untilReflected } from './file.ts'
import { sources } from './sources.ts'
import { type Receiver, openIntake } from '../eventIntake.ts'
import { createTurns } from './turnsByTenant.ts'
import { createOpenWork } from '../openWork.ts'
import { contextOf } from '../processManager.ts'

/**
 * Makes the files that were asked for. The log is all the memory there is: what was requested and has not ended is open,
 * and the checkpoint stays behind the oldest of it, so that whoever comes after a crash finds it again and begins anew
 * with a new attempt, from a new cut.
 *
 *   open ─▶ running ─▶ gone, when the log says that it ended: completed, failed, cancelled or expired
 *      ▲        │
 *      └────────┘  a part did not answer, or the attempt failed: again, a little later
 *
 * A cancellation comes by the log like everything else, and ends the attempt that is under way within a batch of rows.
 */

const NAME = 'exports'
const AT_ONCE_MAX = 2
const TICK_MS = 100
const RETRY_MS = 1_000
const EXPIRE_EVERY_MS = 2_000
const EXPIRE_AT_ONCE = 100
const SWEEP_EVERY_MS = 60_000
const FAILURE_CODE = 'internal_error'

type Request = Recorded<Extract<OperationEvent, { type: 'ExportRequested' }>>
type Job = {
  readonly request: Request
  /** Aborts when the log says that it ended. */
  readonly ended: AbortController
  dueAtMs: number
}

type Sent = Handled<KindOf<typeof operationEntity>>
type Send = (command: OperationCommand) => Promise<Sent>

/** `run` makes the ids of the events: the same run that sends again is recognised, another one is not taken for it. */
const sender = ({ ledger }: ExportDependencies, recorded: Recorded<OperationEvent>, run: string): Send => {
  const id = recorded.id as OperationId
  return command => {
    const context = { ...contextOf(NAME, recorded, ledger.world), commandId: `${NAME}/${run}/${command.type}` }
    return handle(ledger, operationEntity, id, { command, context })
  }
}

const RUN_BYTES = 16
const newRun = ({ ledger }: ExportDependencies): string =>
  Buffer.from(ledger.world.randomBytes(RUN_BYTES)).toString('hex')

/** One attempt, if the operation still wants one. Throws Unavailable, or what the signal aborted with. */
const attemptOnce = async (parts: ExportDependencies, request: Request, signal: AbortSignal): Promise<void> => {
  const { event, id, position, metadata } = request
  await untilReflected(parts, sources[event.data.resource], position, signal)
  const run = newRun(parts)
  const send = sender(parts, request, run)
  const started = await send({ type: 'StartAttempt', run })
  if (!started.ok) throw new Error(`No attempt at ${id} could be begun.`)
  if (started.state.status !== 'running' || started.state.run !== run) return
  const { attempt, terms } = started.state
  try {
    await deleteEarlier(parts.database.sql, { id, attempt })
    const summary = await makeFile(parts, { id, attempt, tenant: metadata.tenant, terms }, signal)
    await send({ type: 'CompleteExport', run, ...summary })
  } catch (error) {
    if (signal.aborted || error instanceof Unavailable) throw error
    parts.log.error({ operation: id, attempt, error }, 'an attempt at an export failed')
    await send({ type: 'FailAttempt', run, code: FAILURE_CODE })
    throw error
  }
}

const expireOverdue = async (parts: ExportDependencies): Promise<void> => {
  const { database, ledger } = parts
  const at = new Date(ledger.world.now()).toISOString()
  const { text, values } = overdueOperations(at, EXPIRE_AT_ONCE)
  for (const { id } of await database.sql<{ id: string }>(text, values)) {
    const [first] = await ledger.aggregates.history(operationEntity, id as OperationId)
    if (first === undefined) continue
    const expired = await sender(parts, first, newRun(parts))({ type: 'ExpireOperation', at })
    if (expired.ok && expired.state.status === 'expired') await deleteFile(database.sql, id)
  }
}

const sweep = async ({ database: { sql } }: ExportDependencies): Promise<void> => {
  for (const stray of await strayFiles(sql)) await deleteAttempt(sql, stray)
}

/** Does the work at most once in the time; a part that does not answer is asked again the next time. */
const every = (periodMs: number, parts: ExportDependencies, work: (parts: ExportDependencies) => Promise<void>) => {
  const { world } = parts.ledger
  let dueAtMs = 0
  return async (): Promise<void> => {
    if (world.monotonicMs() < dueAtMs) return
    dueAtMs = world.monotonicMs() + periodMs
    await work(parts).catch((error: unknown) => {
      if (!(error instanceof Unavailable)) throw error
    })
  }
}

const isRequest = (recorded: Recorded<OperationEvent>): recorded is Request => recorded.event.type === 'ExportRequested'

const ENDS: ReadonlySet<OperationEvent['type']> = new Set([
  'ExportCompleted',
  'OperationFailed',
  'OperationCancelled',
  'OperationExpired',
])

type Jobs = Receiver & {
  readonly startDue: (stop: AbortSignal) => void
  /** Resolves when no attempt is under way any more. */
  readonly allEnded: () => Promise<void>
}

/** The exports that are open in one run, and the attempts at them. */
const createJobs = (parts: ExportDependencies): Jobs => {
  const { world } = parts.ledger
  const open = createOpenWork<Job>()
  // A job that ended is no longer open, and may need a moment more to notice.
  const running = new Map<Job, Promise<void>>()
  const turns = createTurns<Job>(({ request }) => request.metadata.tenant)

  const run = async (job: Job, stop: AbortSignal): Promise<void> => {
    try {
      await attemptOnce(parts, job.request, AbortSignal.any([stop, job.ended.signal]))
      open.end(job.request.id)
    } catch {
      // Only the log says that it has ended: any that has not is tried again, however this attempt ended.
      job.dueAtMs = world.monotonicMs() + RETRY_MS
    }
    running.delete(job)
  }

  return {
    open,
    take: (taken, origin) => {
      const recorded = taken as Recorded<OperationEvent>
      if (isRequest(recorded))
        open.begin(recorded.id, { request: recorded, ended: new AbortController(), dueAtMs: 0 }, origin)
      if (!ENDS.has(recorded.event.type)) return
      open.get(recorded.id)?.ended.abort()
      open.end(recorded.id)
    },
    startDue: stop => {
      while (running.size < AT_ONCE_MAX) {
        const jobs = [...open.entries()].map(([, job]) => job)
        const due = jobs.filter(job => !running.has(job) && job.dueAtMs <= world.monotonicMs())
        const next = turns.next(due, [...running.keys()])
        if (next === undefined) return
        running.set(next, run(next, stop))
      }
    },
    allEnded: async () => {
      await Promise.all(running.values())
    },
  }
}

export const exportsFeed = (parts: ExportDependencies): Feed => ({
  name: NAME,
  categories: ['operation'],
  beginRun: async (epoch, signal) => {
    const { database, ledger } = parts
    const { store, world } = ledger
    const jobs = createJobs(parts)
    const { after, processBatch: take, serve } = await openIntake({ name: NAME, database, store, world, epoch }, jobs)
    return { after, processBatch: take, background: () => work(parts, { jobs, serve }, signal) }
  },
})

type Working = { readonly jobs: Jobs; readonly serve: () => Promise<void> }

const work = async (parts: ExportDependencies, { jobs, serve }: Working, signal: AbortSignal): Promise<void> => {
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  const regular = [serve, every(EXPIRE_EVERY_MS, parts, expireOverdue), every(SWEEP_EVERY_MS, parts, sweep)]
  try {
    while (!signal.aborted) {
      jobs.startDue(either)
      for (const due of regular) await due()
      await parts.ledger.world.sleep(TICK_MS, signal)
    }
  } finally {
    stop.abort()
    await jobs.allEnded()
  }
}
