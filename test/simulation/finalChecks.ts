import { STATUS_AGE_MAX_MS } from '../../src/commands/tenantStatus.ts'
import { RECOVERED_WITHIN_MS } from '../../src/processes/recoveryTimes.ts'
import { checkBooks } from './checks/books.ts'
import { checkAnswers } from './checks/answers.ts'
import { checkExportFiles } from './checks/exportFiles.ts'
import { checkStreamAgreement } from './checks/streamAgreement.ts'
import { checkManifests, checkReader, checkSubscriptions, checkTopics } from './checks/facts.ts'
import { checkOtherLogs } from './checks/otherLogs.ts'
import { checkParked } from './checks/deadLetters.ts'
import { checkPersonalTexts, readAllTexts, withoutLostTexts } from './checks/personalTexts.ts'
import { checkReadModels } from './checks/readModels.ts'
import { violation, type Violation } from './checks/violation.ts'
import { TENANT_CALLERS } from './clients/callers.ts'
import { createClient } from './clients/client.ts'
import { type FactReader, readAllPages } from './clients/reader.ts'
import { type History, onlyInternalErrors } from './history.ts'
import { OTHER_LOG } from './instance.ts'
import { timeOf } from './machine.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'
import type { Timeline } from './timeline.ts'

/** The checks at the end of a run, when all faults are over: the state of the service is compared with its guarantees. */

export type Run = {
  readonly timeline: Timeline
  readonly history: History
  readonly service: Service
  readonly random: Random
}

/** Clients may continue their retries for this time after the end of the faults. */
const RETRIES_MAX_MS = 40_000
const CHECK_EVERY_MS = 500
/** An event needs some time to arrive in read models, at the broker and at readers. */
const ARRIVAL_MAX_MS = 2_000
/** Readers have negative action numbers. */
const FINAL_READER_ACTION = -11
const DOWNLOAD_ACTION = -21
/** A reader that has received nothing new for this time has stopped. */
const READ_MAX_MS = 5_000

/**
 * After a rebuild or a restore of the tables readers may receive facts again, because a fact that is parked anew becomes late
 * again.
 */
const withGuarantees = ({ wasStoppedByOperator }: Service, reader: FactReader): FactReader => ({
  ...reader,
  isOnce: reader.isOnce && !wasStoppedByOperator(),
})

/** Events that were stored before `settledAt` must have arrived everywhere. */
const checkArrived = async (
  { service }: Run,
  readers: readonly FactReader[],
  settledAt: string,
): Promise<readonly Violation[]> => {
  const { log, broker, engine, operator } = service
  return [
    ...(await checkReadModels(log, engine, settledAt)),
    ...(await checkBooks(log, engine, settledAt)),
    ...checkTopics(log, broker, settledAt),
    ...checkSubscriptions(log, broker, settledAt),
    ...(await checkParked(log, engine, operator.discarded)),
    ...readers.flatMap(reader => checkReader(log, withGuarantees(service, reader), settledAt)),
  ]
}

/** Checks the state of the service, without the answers that clients got. */
const checkState = async (
  run: Run,
  readers: readonly FactReader[],
  settledAt: string,
): Promise<readonly Violation[]> => [
  ...checkStreamAgreement(run.service.log),
  ...(await checkArrived(run, readers, settledAt)),
]

const textOf = ({ promise, detail }: Violation): string => `${promise}: ${detail}`

/** Remembers the work that is open now: it must be completed within the time for recovery, whatever clients begin later. */
const openWorkOf = (run: Run, readers: readonly FactReader[]) => {
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

/** No process may have refused the log of its tables. */
const checkLogged = (lines: readonly string[]): readonly Violation[] =>
  lines
    .filter(line => line.includes(OTHER_LOG))
    .map(line => violation('the service accepts the log of its tables', line))

/** One reader for each tenant reads all facts from the beginning. */
const checkFinalReaders = async (run: Run, settledAt: string): Promise<readonly Violation[]> => {
  const { timeline, history, service, random } = run
  const quiet = onlyInternalErrors(history)
  const allPages = TENANT_CALLERS.map((caller, index) => {
    const own = random.fork(`walker/${index}`)
    const client = createClient({ service, timeline, history: quiet, random: own, action: FINAL_READER_ACTION - index })
    return readAllPages({ client, caller, isOver: () => false })
  })
  const isOver = (): boolean => allPages.every(({ isAtEnd }) => isAtEnd())
  const receivedCount = (): number => allPages.reduce((sum, { reader }) => sum + reader.seen.length, 0)
  for (let before = -1; receivedCount() > before && !isOver(); ) {
    before = receivedCount()
    await timeline.advance(timeline.nowMs() + READ_MAX_MS, isOver)
  }
  return allPages.flatMap(({ reader }) => checkReader(service.log, reader, settledAt))
}

/** Whether an instance may still take a tenant for suspended, or a scope for revoked, that no longer is. */
const mayRefuseFromThePast = ({ timeline, service: { log } }: Run): boolean => {
  const since = timeOf(timeline.nowMs() - STATUS_AGE_MAX_MS)
  return log.events.some(({ type, storedAt }) => isRelease(type) && storedAt >= since)
}
const isRelease = (type: string): boolean => type === 'TenantReinstated' || type === 'ScopeRestored'

/** A suspended tenant is reinstated when the faults are over, so that every file can be downloaded. */
const checkFiles = async (run: Run): Promise<readonly Violation[]> => {
  const { timeline, history, service, random } = run
  if (mayRefuseFromThePast(run)) await timeline.advance(timeline.nowMs() + STATUS_AGE_MAX_MS)
  const quiet = onlyInternalErrors(history)
  const own = random.fork('downloads')
  const client = createClient({ service, timeline, history: quiet, random: own, action: DOWNLOAD_ACTION })
  let breaches: readonly Violation[] | undefined
  void checkExportFiles(service.log, client, service.database.restoredTo()).then(violations => (breaches = violations))
  await timeline.advance(timeline.nowMs() + RETRIES_MAX_MS, () => breaches !== undefined)
  return breaches ?? [violation('the file of an export is whole, or 410', 'the downloads did not end')]
}

/** The checks that are made once, when the state of the events stored before `settledAt` is found to be right. */
const checkAtEnd = async (run: Run, settledAt: string): Promise<readonly Violation[]> => {
  const { service, history } = run
  const { lostTexts } = service.database
  const texts = await readAllTexts(service.engine, lostTexts)
  const attempts = withoutLostTexts(history.attempts, lostTexts)
  return [
    ...(await checkFinalReaders(run, settledAt)),
    ...(await checkFiles(run)),
    ...checkManifests(service.log, history),
    ...checkAnswers(attempts, service.log, service.refusals.keys, texts),
    ...(await checkPersonalTexts(service.log, service.engine, { attempts, lostTexts })),
    ...(await checkOtherLogs(service.log, service.engine)),
    ...checkLogged(service.loggedProblems),
  ]
}

/**
 * Called when the faults are over: waits for the clients, then checks the state every half second until it is right. Work that
 * was begun before the call must be completed within the promised ten seconds of recovery; work that clients began later, within
 * ten seconds of the last client's end.
 */
export const runFinalChecks = async (
  run: Run,
  readers: readonly FactReader[],
  openActions: () => number,
): Promise<readonly Violation[]> => {
  const { timeline, service } = run
  const faultsEndedMs = timeline.nowMs()
  const openWork = openWorkOf(run, readers)
  const areClientsDone = (): boolean => openActions() === 0
  await timeline.advance(faultsEndedMs + RECOVERED_WITHIN_MS, areClientsDone)
  await service.database.idle()
  const late = areClientsDone() ? [] : await openWork.check()
  if (late.length > 0) return late
  await timeline.advance(faultsEndedMs + RETRIES_MAX_MS, areClientsDone)
  const endedMs = timeline.nowMs()
  await timeline.advance(endedMs + ARRIVAL_MAX_MS)
  for (;;) {
    await service.database.idle()
    const settledAt = timeOf(timeline.nowMs() - ARRIVAL_MAX_MS)
    const wrong = await checkState(run, readers, settledAt)
    if (wrong.length === 0) return checkAtEnd(run, settledAt)
    const left = openWork.isDue() ? await openWork.check() : []
    if (left.length > 0) return left
    if (timeline.nowMs() >= endedMs + RECOVERED_WITHIN_MS) return wrong
    await timeline.advance(timeline.nowMs() + CHECK_EVERY_MS)
  }
}
