import { facts } from '../../projections/facts/projection.ts'
import type { NewEvent } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { FaultPoint } from './faultPoints.ts'
import { replayParked } from './operator.ts'
import { REFUSING_TABLES } from './refusedRows.ts'
import type { Service } from './service.ts'
import {
  type Fault,
  type FaultContext,
  operatorReplays,
  setConditionFor,
  pauseMachine,
  appendUnknownEvent,
  type WeightedFaults,
} from './faultActions.ts'

/** Faults that begin at a certain point in the work of the service, and faults that combine several failures. */

/** The commands between whose appends a fault may begin. Rare ones have more entries, because some are awaited in vain. */
const DRAWN_COMMANDS = [
  ...['refund', 'refund', 'refund', 'settlement', 'settlement', 'settlement', 'settlement'],
  ...['payment', 'invoice', 'invoice', 'export', 'export'],
]
const OUTAGE_MAX_MS = 3_000
const CRASH_MAX_MS = 2_000
const ELECTION_MIN_MS = 1_500
const ELECTION_MORE_MS = 2_000
const STOP_MIN_MS = 1_000
const STOP_MAX_MS = 4_500
const STOPPED_SESSION_MAX_MS = 1_500

/** By command, whether it has more to append after this event. */
const IS_FOLLOWED_BY_APPENDS: Readonly<Record<string, (event: NewEvent) => boolean>> = {
  payment: ({ type }) => ['PaymentInitiated', 'ReferenceTaken', 'PaymentReserved', 'PaymentApplied'].includes(type),
  refund: ({ type }) => ['RefundInitiated', 'PaymentRefunded'].includes(type),
  settlement: ({ type, data }) =>
    ['PaymentSucceeded', 'PaymentFailed'].includes(type) && data['settlement'] === 'deferred',
  invoice: ({ type }) => ['KeyBound', 'OrderInvoiced'].includes(type),
  export: ({ type }) => type === 'OperationStarted',
}

const isFirstPartOf =
  (command: string) =>
  (point: FaultPoint): boolean =>
    point.kind === 'appended' && point.events.some(event => IS_FOLLOWED_BY_APPENDS[command]?.(event))

const drawDuration = ({ random }: FaultContext, leastMs: number, mostMs: number): number =>
  leastMs + random.next() * (mostMs - leastMs)

const KINDS_BETWEEN_APPENDS = ['outage', 'crash', 'stop', 'election'] as const
type KindBetweenAppends = (typeof KINDS_BETWEEN_APPENDS)[number]

/** Begins the fault when one append of a command is durable, and before the process sends the next one. */
const betweenAppends =
  (kind: KindBetweenAppends, begin: (context: FaultContext, machine: Machine) => void): Fault =>
  context => {
    const { service, history, random } = context
    const command = random.pick(DRAWN_COMMANDS)
    service.faultPoints.onNext(isFirstPartOf(command), ({ machine }) => {
      history.count(betweenAppendsName(kind, command))
      begin(context, machine)
    })
    return true
  }

const outageBetweenAppends = betweenAppends('outage', context =>
  setConditionFor(context, { server: 'event store', condition: 'away', forMs: context.random.next() * OUTAGE_MAX_MS }),
)

const crashBetweenAppends = betweenAppends('crash', ({ service, random }, machine) =>
  service.crash(service.slotOf(machine), random.next() * CRASH_MAX_MS),
)

/** The next append of the command is lost, or it is not readable, and others to its stream are refused, until the election ends. */
const electionBetweenAppends = betweenAppends('election', ({ service, random }) => {
  const forMs = ELECTION_MIN_MS + random.next() * ELECTION_MORE_MS
  service.log.changeLeader(forMs)
  service.extendFaults(forMs)
})

/** While the process is paused, the command can be executed by a retry, a concurrent copy, or the process that takes over. */
const stopBetweenAppends = betweenAppends('stop', (context, machine) => {
  const sessionMs = context.random.next() * STOPPED_SESSION_MAX_MS
  pauseMachine(context, machine, { forMs: drawDuration(context, STOP_MIN_MS, STOP_MAX_MS), sessionMs })
})

const REFUSED_MAX_MS = 4_000
const REPLAY_AFTER_MAX_MS = 1_500

/** A table refuses the rows of one key. After some time the cause is repaired, and an operator requests a replay. */
const refusedRow: Fault = context => {
  const { service, timeline, history, random } = context
  const table = random.chance(0.7) ? facts.name : random.pick(REFUSING_TABLES)
  history.note(`${table} refuses the next row, and those of its key`)
  service.refusals.refuseNext(table)
  const repairedMs = random.next() * REFUSED_MAX_MS
  timeline.after(repairedMs, () => {
    history.note('the tables take every row again')
    service.refusals.acceptAll()
  })
  timeline.after(repairedMs + random.next() * REPLAY_AFTER_MAX_MS, () => void operatorReplays(context))
  return true
}

/** The searching process is paused at one of this many statements. */
const STATEMENTS_MAX = 8
/** The probability that the fault waits for any process that parks an event, and not for a search for poison. */
const ANY_PARKING_CHANCE = 0.15
/** The probability that the searching process is paused when it parks the poison, and not at one of its next statements. */
const AT_PARKING_CHANCE = 0.75
const PAUSE_MIN_MS = 2_400
const PAUSE_MAX_MS = 4_000
const SESSION_MAX_MS = 300
const OPERATOR_MIN_MS = 1_200
const OPERATOR_MAX_MS = 2_200

/**
 * A projector is paused while it searches a batch for poison, and loses its lock. Another one takes over, and an operator repairs
 * and discards before the first one is resumed.
 */
const stoppedWithPoison: Fault = context => {
  const { service, timeline, history, random } = context
  if (random.chance(0.5)) appendUnknownEvent(context)
  else service.refusals.refuseNext(facts.name)
  const pause = (machine: Machine): void => {
    history.count(STOPPED_WITH_POISON)
    const forMs = drawDuration(context, PAUSE_MIN_MS, PAUSE_MAX_MS)
    pauseMachine(context, machine, { forMs, sessionMs: random.next() * SESSION_MAX_MS })
    timeline.after(drawDuration(context, OPERATOR_MIN_MS, OPERATOR_MAX_MS), () => {
      service.refusals.acceptAll()
      history.note('an operator deals with what waits')
      void replayParked(service.operator, 'discard')
    })
  }
  const isParking = (text: string): boolean => text.startsWith('insert into parked_facts')
  if (random.chance(ANY_PARKING_CHANCE)) {
    onNextStatement(service, isParking, pause)
    return true
  }
  const isAtParking = random.chance(AT_PARKING_CHANCE)
  let left = random.integer(1, STATEMENTS_MAX)
  const isAt = (text: string): boolean => (isAtParking ? isParking(text) : (left -= 1) === 0)
  onNextStatement(
    service,
    text => text === 'savepoint apart',
    searching => onNextStatement(service, (text, machine) => machine === searching && isAt(text), pause),
  )
  return true
}

type FitsStatement = (text: string, machine: Machine) => boolean
const onNextStatement = ({ faultPoints }: Service, fits: FitsStatement, begin: (machine: Machine) => void): void =>
  faultPoints.onNext(
    point => point.kind === 'statement' && fits(point.text, point.machine),
    ({ machine }) => begin(machine),
  )

const isAppendOf = (point: FaultPoint, type: string): boolean =>
  point.kind === 'appended' && point.events.some(event => event.type === type)
/** The first statement of an attempt at an export, which waits for its read model. */
const READS_CHECKPOINT = 'select position from checkpoints'
const HANDED_OVER_PAUSE_MS = 4_500
const RESUMED_AFTER_MAX_MS = 20

/**
 * A worker is paused at the begin of an export, loses its lock, and is resumed during the attempt of its successor. Its attempt then
 * supersedes that of the successor, and ends when the worker notices that it was replaced.
 */
const exportHandedOver: Fault = context => {
  const { service, timeline, history, random } = context
  const resumeDuringExport = (stopped: Machine): void =>
    service.faultPoints.onNext(
      point => isAppendOf(point, 'OperationStarted') && point.machine !== stopped,
      () => {
        history.count(HANDED_OVER)
        timeline.after(random.next() * RESUMED_AFTER_MAX_MS, () => stopped.resume())
      },
    )
  const pause = (machine: Machine): void => {
    pauseMachine(context, machine, { forMs: HANDED_OVER_PAUSE_MS, sessionMs: random.next() * SESSION_MAX_MS })
    resumeDuringExport(machine)
  }
  service.faultPoints.onNext(
    point => isAppendOf(point, 'ExportRequested'),
    () => onNextStatement(service, text => text.startsWith(READS_CHECKPOINT), pause),
  )
  return true
}

export const timedFaults: WeightedFaults = {
  'outage between appends': { weight: 7, begin: outageBetweenAppends },
  'crash between appends': { weight: 7, begin: crashBetweenAppends },
  'stop between appends': { weight: 7, begin: stopBetweenAppends },
  'election between appends': { weight: 7, begin: electionBetweenAppends },
  'refused row': { weight: 10, begin: refusedRow },
  'stopped with poison': { weight: 9, begin: stoppedWithPoison },
  'export handed over': { weight: 4, begin: exportHandedOver },
}

const STOPPED_WITH_POISON = 'paused during a search for poison'
const HANDED_OVER = 'resumed during an export of its successor'
const betweenAppendsName = (kind: KindBetweenAppends, command: string): string =>
  `between two appends: ${kind}, ${command}`

/** The names under which these faults are counted when they begin. */
export const COUNTED_TIMED_FAULTS: readonly string[] = [
  STOPPED_WITH_POISON,
  HANDED_OVER,
  ...KINDS_BETWEEN_APPENDS.flatMap(kind =>
    Object.keys(IS_FOLLOWED_BY_APPENDS).map(command => betweenAppendsName(kind, command)),
  ),
]
