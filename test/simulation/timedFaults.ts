import { facts } from '../../projections/facts/projection.ts'
import type { NewEvent } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { FaultPoint } from './faultPoints.ts'
import { replayParked } from './operator.ts'
import { REFUSING_TABLES } from './refusedRows.ts'
import type { Service } from './service.ts'
import { type Fault, type FaultContext, operatorReplays, disturb, stop, unknownEvent } from './faultActions.ts'

/** Faults that strike at a moment of the service's work, or that only together lead to where a defect may be. */

/** Rare commands are drawn oftener: more of them are awaited in vain. */
const DRAWN = [
  ...['refund', 'refund', 'refund', 'settlement', 'settlement', 'settlement', 'settlement'],
  ...['payment', 'invoice', 'invoice', 'export', 'export'],
]
const AWAY_MAX_MS = 3_000
const CRASH_MAX_MS = 2_000
const ELECTION_MIN_MS = 1_500
const ELECTION_MORE_MS = 2_000
const STOP_MIN_MS = 1_000
const STOP_MAX_MS = 4_500
const STOPPED_SESSION_MAX_MS = 1_500

/** Whether a command has more to append after this event, by what the command is. */
const BEGINNINGS: Readonly<Record<string, (event: NewEvent) => boolean>> = {
  payment: ({ type }) => ['PaymentInitiated', 'ReferenceTaken', 'PaymentReserved', 'PaymentApplied'].includes(type),
  refund: ({ type }) => ['RefundInitiated', 'PaymentRefunded'].includes(type),
  settlement: ({ type, data }) =>
    ['PaymentSucceeded', 'PaymentFailed'].includes(type) && data['settlement'] === 'deferred',
  invoice: ({ type }) => ['KeyBound', 'OrderInvoiced'].includes(type),
  export: ({ type }) => type === 'OperationStarted',
}

const hasBegun =
  (command: string) =>
  (moment: FaultPoint): boolean =>
    moment.kind === 'appended' && moment.events.some(event => BEGINNINGS[command]?.(event))

const between = ({ random }: FaultContext, leastMs: number, mostMs: number): number =>
  leastMs + random.next() * (mostMs - leastMs)

const STRIKES = ['outage', 'crash', 'stop', 'election'] as const
type Strike = (typeof STRIKES)[number]

/** Strikes the process as soon as one part of a command is durable, and before it sends the next one. */
const betweenAppends =
  (what: Strike, strike: (context: FaultContext, machine: Machine) => void): Fault =>
  context => {
    const { service, history, random } = context
    const command = random.pick(DRAWN)
    service.faultPoints.next(hasBegun(command), ({ machine }) => {
      history.count(betweenAppendsName(what, command))
      strike(context, machine)
    })
    return true
  }

const outageBetweenAppends = betweenAppends('outage', context =>
  disturb(context, { server: 'event store', condition: 'away', forMs: context.random.next() * AWAY_MAX_MS }),
)

const crashBetweenAppends = betweenAppends('crash', ({ service, random }, machine) =>
  service.crash(service.placeOf(machine), random.next() * CRASH_MAX_MS),
)

/** The next append of the command is decided and not yet readable, and others at its stream are refused until it is. */
const electionBetweenAppends = betweenAppends('election', ({ service, random }) => {
  const forMs = ELECTION_MIN_MS + random.next() * ELECTION_MORE_MS
  service.log.changeLeader(forMs)
  service.trouble(forMs)
})

/** Others carry the command out meanwhile: a retry, a twin, or the process that takes over. */
const stopBetweenAppends = betweenAppends('stop', (context, machine) => {
  const sessionMs = context.random.next() * STOPPED_SESSION_MAX_MS
  stop(context, machine, { forMs: between(context, STOP_MIN_MS, STOP_MAX_MS), sessionMs })
})

const REFUSED_MAX_MS = 4_000
const NOTICED_MAX_MS = 1_500

/** A table does not take the rows of one key. The cause is mended after some time, and an operator asks for what waits. */
const refusedRow: Fault = context => {
  const { service, timeline, history, random } = context
  const table = random.chance(0.7) ? facts.name : random.pick(REFUSING_TABLES)
  history.note(`${table} refuses the next row, and those of its key`)
  service.refusals.refuseNext(table)
  const mendedMs = random.next() * REFUSED_MAX_MS
  timeline.after(mendedMs, () => {
    history.note('the tables take every row again')
    service.refusals.mend()
  })
  timeline.after(mendedMs + random.next() * NOTICED_MAX_MS, () => void operatorReplays(context))
  return true
}

/** How many statements of the sifting are sent before the process is stopped. */
const SIFTED_MAX = 8
/** Where the process is stopped: when anybody parks anything, or else when the sifting one parks, or at some statement. */
const ANY_PARKING_CHANCE = 0.15
const AT_PARKING_CHANCE = 0.75
const SLEEP_MIN_MS = 2_400
const SLEEP_MAX_MS = 4_000
const SESSION_MAX_MS = 300
const OPERATOR_MIN_MS = 1_200
const OPERATOR_MAX_MS = 2_200

/**
 * A projector is stopped while it sifts a batch with poison in it, and loses its lock; another one takes over, and the
 * poison is dealt with before the first one wakes.
 */
const stoppedWithPoison: Fault = context => {
  const { service, timeline, history, random } = context
  if (random.chance(0.5)) unknownEvent(context)
  else service.refusals.refuseNext(facts.name)
  const strike = (machine: Machine): void => {
    history.count(STOPPED)
    const forMs = between(context, SLEEP_MIN_MS, SLEEP_MAX_MS)
    stop(context, machine, { forMs, sessionMs: random.next() * SESSION_MAX_MS })
    timeline.after(between(context, OPERATOR_MIN_MS, OPERATOR_MAX_MS), () => {
      service.refusals.mend()
      history.note('an operator deals with what waits')
      void replayParked(service.operator, 'discard')
    })
  }
  const isParking = (text: string): boolean => text.startsWith('insert into parked_facts')
  if (random.chance(ANY_PARKING_CHANCE)) {
    onStatement(service, isParking, strike)
    return true
  }
  const isAtParking = random.chance(AT_PARKING_CHANCE)
  let left = random.integer(1, SIFTED_MAX)
  const isAt = (text: string): boolean => (isAtParking ? isParking(text) : (left -= 1) === 0)
  onStatement(
    service,
    text => text === 'savepoint apart',
    sifting => onStatement(service, (text, machine) => machine === sifting && isAt(text), strike),
  )
  return true
}

type Fits = (text: string, machine: Machine) => boolean
const onStatement = ({ faultPoints }: Service, fits: Fits, strike: (machine: Machine) => void): void =>
  faultPoints.next(
    moment => moment.kind === 'statement' && fits(moment.text, moment.machine),
    ({ machine }) => strike(machine),
  )

const isExport = (moment: FaultPoint, type: string): boolean =>
  moment.kind === 'appended' && moment.events.some(event => event.type === type)
/** An attempt at an export looks first how far its read model has come. */
const CHECKPOINT = 'select position from checkpoints'
const HANDED_OVER_MAX_MS = 4_500
const WOKEN_MAX_MS = 20

/**
 * A worker is stopped with an export before it, loses its lock, and goes on in the midst of the attempt of its successor:
 * the attempt that it has begun supersedes that one, and ends when the worker notices that it was replaced.
 */
const exportHandedOver: Fault = context => {
  const { service, timeline, history, random } = context
  const wakeAmidst = (stopped: Machine): void =>
    service.faultPoints.next(
      moment => isExport(moment, 'OperationStarted') && moment.machine !== stopped,
      () => {
        history.count(HANDED_OVER)
        timeline.after(random.next() * WOKEN_MAX_MS, () => stopped.resume())
      },
    )
  const strike = (machine: Machine): void => {
    stop(context, machine, { forMs: HANDED_OVER_MAX_MS, sessionMs: random.next() * SESSION_MAX_MS })
    wakeAmidst(machine)
  }
  service.faultPoints.next(
    moment => isExport(moment, 'ExportRequested'),
    () => onStatement(service, text => text.startsWith(CHECKPOINT), strike),
  )
  return true
}

type Weighted = Readonly<Record<string, readonly [weight: number, fault: Fault]>>
export const timedFaults: Weighted = {
  'outage between appends': [7, outageBetweenAppends],
  'crash between appends': [7, crashBetweenAppends],
  'stop between appends': [7, stopBetweenAppends],
  'election between appends': [7, electionBetweenAppends],
  'refused row': [10, refusedRow],
  'stopped with poison': [9, stoppedWithPoison],
  'export handed over': [4, exportHandedOver],
}

const STOPPED = 'stopped with poison in the batch'
const HANDED_OVER = 'went on in the midst of an export of its successor'
const betweenAppendsName = (what: Strike, command: string): string => `between two appends: ${what}, ${command}`

/** The names that are counted when the moment of a fault has come. */
export const STRUCK: readonly string[] = [
  STOPPED,
  HANDED_OVER,
  ...STRIKES.flatMap(what => Object.keys(BEGINNINGS).map(command => betweenAppendsName(what, command))),
]
