import { facts } from '../../projections/facts/projection.ts'
import { RECOVERED_WITHIN_MS } from '../../src/processes/recoveryTimes.ts'
import { checkStreamAgreement } from './checks/streamAgreement.ts'
import { checkReadModels } from './checks/readModels.ts'
import { violation, type Violation } from './checks/violation.ts'
import type { Run } from './finalChecks.ts'
import { timeOf } from './machine.ts'
import { rebuildTables } from './operator.ts'

/**
 * The end of some runs: the event store is restored from a backup while the service runs, and may grow beyond its former end
 * before any process checks it. Every process must notice and end. Then an operator rebuilds the tables, and work that is
 * unfinished in the backup is completed. Manifests are not checked here: those sealed before the processes notice may count
 * lost facts.
 */

/** Processes check the log every three seconds, and compare several times within four seconds. */
const NOTICED_MS = 10_000
const CHECK_EVERY_MS = 500
const REBUILD_MAX_MS = 20_000
/** A batch with an event that cannot be read is applied event by event. In the log of an hour these are most batches. */
const MAX_MS_PER_EVENT = { emptied: 2, read: 20 }

/** Waits until the processes that were stopped for a rebuild or restore have started, and a projector has read the whole log. */
export const untilRebuilt = async ({ timeline, service }: Pick<Run, 'timeline' | 'service'>): Promise<void> => {
  const { length } = service.log.events
  const isRead = (): boolean =>
    service.instances().some(({ feedStates }) => feedStates().get('projector')?.state === 'live')
  const startedMs = timeline.nowMs() + REBUILD_MAX_MS + MAX_MS_PER_EVENT.emptied * length
  await timeline.advance(startedMs, () => !service.isStoppedByOperator())
  await timeline.advance(timeline.nowMs() + MAX_MS_PER_EVENT.read * length, isRead)
}

/**
 * A log that has grown is recognised by a lost fact that a process saw at its last check. Facts may be newer than that check, so
 * the restore also loses a fact that is older than this.
 */
const CHECKED_BEFORE_MS = 3_500
const NEWEST_FACT_BEFORE = `select max(position) as position from ${facts.name} where position <= $1`

/** Restores the log so that at least one published fact is lost. Resolves with false if there is no such fact. */
const restore = async ({ timeline, service, history, random }: Run): Promise<boolean> => {
  const own = random.fork('restore')
  const { events } = service.log
  const lastChecked = events.findLast(({ storedAt }) => storedAt < timeOf(timeline.nowMs() - CHECKED_BEFORE_MS))
  if (lastChecked === undefined) return false
  const [row] = await service.engine.query<{ position: bigint | null }>(NEWEST_FACT_BEFORE, [lastChecked.position])
  const newest = row?.position
  if (newest === undefined || newest === null) return false
  const before = events.filter(({ position }) => position < newest).length
  const kept = own.integer(Math.floor(before / 2), before)
  const isGrown = own.chance(0.5)
  history.count('fault: restored log')
  history.note(`the log is restored: ${kept} of ${events.length} events${isGrown ? ', and it has grown' : ''}`)
  service.log.restore(kept, isGrown)
  return true
}

export const checkRestored = async (run: Run): Promise<readonly Violation[]> => {
  if (!(await restore(run))) return []
  const { timeline, service } = run
  const { log, engine, operator } = service
  await timeline.advance(timeline.nowMs() + NOTICED_MS, () => service.instances().length === 0)
  const left = service.instances().map(({ machine }) => machine.name)
  if (left.length > 0) return [violation('a restored log is noticed', `${left.join()} still run`)]
  void rebuildTables(operator, service)
  await untilRebuilt(run)
  const untilMs = timeline.nowMs() + RECOVERED_WITHIN_MS
  for (;;) {
    await timeline.advance(timeline.nowMs() + CHECK_EVERY_MS)
    await service.database.idle()
    const settledAt = timeOf(timeline.nowMs() - CHECK_EVERY_MS)
    const wrong = [...checkStreamAgreement(log), ...(await checkReadModels(log, engine, settledAt))]
    if (wrong.length === 0) return []
    if (timeline.nowMs() >= untilMs) return wrong
  }
}
