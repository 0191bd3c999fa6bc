import { facts } from '../../projections/facts/projection.ts'
import { RECOVERED_WITHIN_MS } from '../../src/commands/timeBudgets.ts'
import { checkStreamAgreement } from './checks/streamAgreement.ts'
import { checkReadModels } from './checks/readModels.ts'
import { violation, type Violation } from './checks/violation.ts'
import type { Run } from './finalChecks.ts'
import { timeOf } from './machine.ts'
import { rebuildTables } from './operator.ts'

/**
 * The end of some runs: the event store is restored from a backup under the running service, and may have grown beyond
 * its former end before anybody looks. Every process notices and ends; an operator has the tables made anew, and work that
 * the backup has unfinished is finished. A manifest that is sealed before the processes notice may speak of lost facts.
 */

/** The log is looked at every three seconds. */
const NOTICED_MS = 6_000
const REBUILD_MAX_MS = 10_000
const REBUILD_MAX_MS_PER_EVENT = 2
const CHECK_EVERY_MS = 500

/** A fact that came since the last look may be lost unnoticed, where the log has grown: here an older one is lost too. */
const LOOKED_MS = 3_500
const NEWEST = `select max(position) as position from ${facts.name} where position <= $1`

/** Events since the backup are lost, one published fact at least; false where there is none. */
const restore = async ({ timeline, service, history, random }: Run): Promise<boolean> => {
  const own = random.fork('restore')
  const { events } = service.log
  const looked = events.findLast(({ storedAt }) => storedAt < timeOf(timeline.nowMs() - LOOKED_MS))
  if (looked === undefined) return false
  const [row] = await service.engine.run<{ position: bigint | null }>(NEWEST, [looked.position])
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
  await timeline.run(timeline.nowMs() + NOTICED_MS, () => service.instances().length === 0)
  const left = service.instances().map(({ machine }) => machine.name)
  if (left.length > 0) return [violation('a log that was restored is noticed', `${left.join()} still serve it`)]
  void rebuildTables(operator, service)
  await timeline.run(
    timeline.nowMs() + REBUILD_MAX_MS + REBUILD_MAX_MS_PER_EVENT * log.events.length,
    () => !service.isEnded(),
  )
  const untilMs = timeline.nowMs() + RECOVERED_WITHIN_MS
  for (;;) {
    await timeline.run(timeline.nowMs() + CHECK_EVERY_MS)
    await service.database.idle()
    const settledAt = timeOf(timeline.nowMs() - CHECK_EVERY_MS)
    const wrong = [...checkStreamAgreement(log), ...(await checkReadModels(log, engine, settledAt))]
    if (wrong.length === 0) return []
    if (timeline.nowMs() >= untilMs) return wrong
  }
}
