import { RECOVERED_WITHIN_MS } from '../../src/commands/timeBudgets.ts'
import { checkAnswers } from './checks/answers.ts'
import { checkStreamAgreement } from './checks/streamAgreement.ts'
import { checkManifests, checkReader, checkSubscriptions, checkTopics } from './checks/facts.ts'
import { checkOtherLogs } from './checks/otherLogs.ts'
import { checkParked } from './checks/parked.ts'
import { checkReadModels } from './checks/readModels.ts'
import { violation, type Violation } from './checks/violation.ts'
import { TENANT_CALLERS } from './clients/callers.ts'
import { createClient } from './clients/client.ts'
import { type FactReader, readAllPages } from './clients/reader.ts'
import { type History, quietly } from './history.ts'
import { OTHER_LOG } from './instance.ts'
import { timeOf } from './machine.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Timeline } from './timeline.ts'

/** The promises about a service in which everything works again. */

export type Run = {
  readonly timeline: Timeline
  readonly history: History
  readonly service: Service
  readonly random: Random
}

/** Clients go on with their retries for some time after everything is healed. */
const PATIENCE_MS = 40_000
const CHECK_EVERY_MS = 500
/** An event of a moment ago may still be on its way. */
const ON_ITS_WAY_MS = 2_000
/** Actions of readers have numbers below zero. */
const WALKER = -11
/** A reader who has seen nothing new for so long has stopped. */
const WALK_MS = 5_000

/** A fact that is parked again while the tables are made anew comes late again. */
const asPromised = ({ wasEnded }: Service, reader: FactReader): FactReader => ({
  ...reader,
  isOnce: reader.isOnce && !wasEnded(),
})

/** Events that were stored before `settledAt` have had time to arrive everywhere. */
const checkArrived = async (
  { service }: Run,
  readers: readonly FactReader[],
  settledAt: string,
): Promise<readonly Violation[]> => {
  const { log, broker, engine, operator } = service
  return [
    ...(await checkReadModels(log, engine, settledAt)),
    ...checkTopics(log, broker, settledAt),
    ...checkSubscriptions(log, broker, settledAt),
    ...(await checkParked(log, engine, operator.discarded)),
    ...readers.flatMap(reader => checkReader(log, asPromised(service, reader), settledAt)),
  ]
}

/** The promises about the state, without regard to the answers of clients. */
const checkState = async (run: Run, readers: readonly FactReader[]): Promise<readonly Violation[]> => [
  ...checkStreamAgreement(run.service.log),
  ...(await checkArrived(run, readers, timeOf(run.timeline.nowMs() - ON_ITS_WAY_MS))),
]

const textOf = ({ promise, detail }: Violation): string => `${promise}: ${detail}`

/** The work that is open now. Ten seconds later none of it may be, whatever clients have begun since. */
const whatIsBegun = (run: Run, readers: readonly FactReader[]) => {
  const { timeline, service } = run
  const beganMs = timeline.nowMs()
  const open = new Set(checkStreamAgreement(service.log).map(textOf))
  return {
    isDue: () => timeline.nowMs() >= beganMs + RECOVERED_WITHIN_MS,
    check: async (): Promise<readonly Violation[]> => [
      ...checkStreamAgreement(service.log).filter(one => open.has(textOf(one))),
      ...(await checkArrived(run, readers, timeOf(beganMs))),
    ],
  }
}

/** A service that refuses the log of its own tables would serve nothing. */
const checkLogged = (lines: readonly string[]): readonly Violation[] =>
  lines.filter(line => line.includes(OTHER_LOG)).map(line => violation('a healthy ledger is served', line))

/** Of each tenant one who begins at the beginning when everything is over. */
const walkOnce = async (run: Run): Promise<readonly Violation[]> => {
  const { timeline, history, service, random } = run
  const quiet = quietly(history)
  const walks = TENANT_CALLERS.map((caller, index) => {
    const own = random.fork(`walker/${index}`)
    const client = createClient({ service, timeline, history: quiet, random: own, action: WALKER - index })
    return readAllPages({ client, caller, isOver: () => false })
  })
  const isOver = (): boolean => walks.every(({ isAtEnd }) => isAtEnd())
  const seenCount = (): number => walks.reduce((sum, { reader }) => sum + reader.seen.length, 0)
  for (let before = -1; seenCount() > before && !isOver(); ) {
    before = seenCount()
    await timeline.run(timeline.nowMs() + WALK_MS, isOver)
  }
  const settledAt = timeOf(timeline.nowMs() - ON_ITS_WAY_MS)
  return walks.flatMap(({ reader }) => checkReader(service.log, reader, settledAt))
}

/** Checks that are made once, when everything is over. */
const checkAtEnd = async (run: Run): Promise<readonly Violation[]> => {
  const { service, history } = run
  return [
    ...(await walkOnce(run)),
    ...checkManifests(service.log, history),
    ...checkAnswers(history, service.log, service.refusals.keys),
    ...(await checkOtherLogs(service.log, service.engine)),
    ...checkLogged(service.faultsLogged),
  ]
}

/**
 * From the moment at which everything works again: lets clients end, and looks every half second until nothing is wrong
 * with the state any more. Work that was begun before has ten seconds from that moment (the promise of recovery), and
 * work that clients have begun since has ten from the last of them.
 */
export const finish = async (
  run: Run,
  readers: readonly FactReader[],
  openActions: () => number,
): Promise<readonly Violation[]> => {
  const { timeline, service } = run
  const healedMs = timeline.nowMs()
  const begun = whatIsBegun(run, readers)
  const areClientsDone = (): boolean => openActions() === 0
  await timeline.run(healedMs + RECOVERED_WITHIN_MS, areClientsDone)
  await service.database.idle()
  const late = areClientsDone() ? [] : await begun.check()
  if (late.length > 0) return late
  await timeline.run(healedMs + PATIENCE_MS, areClientsDone)
  const endedMs = timeline.nowMs()
  await timeline.run(endedMs + ON_ITS_WAY_MS)
  for (;;) {
    await service.database.idle()
    const wrong = await checkState(run, readers)
    if (wrong.length === 0) return checkAtEnd(run)
    const left = begun.isDue() ? await begun.check() : []
    if (left.length > 0) return left
    if (timeline.nowMs() >= endedMs + RECOVERED_WITHIN_MS) return wrong
    await timeline.run(timeline.nowMs() + CHECK_EVERY_MS)
  }
}
