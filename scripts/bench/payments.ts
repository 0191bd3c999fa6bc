import { callerOf, PARTS_PER_INVOICE } from './apiClient.ts'
import { openCpuMeter, processGroups } from './processes.ts'
import type { Harness } from './harness.ts'
import { type Measure, perSecond, type Size } from './measure.ts'
import { appendTails, cpuRows, insertRows, ratesRows, type Round } from './paymentRows.ts'
import { partsOf, pay, payAndCheck, payElsewhere, payEmmett, type PaidSample } from './paymentSides.ts'

const CONNECTIONS = [1, 16, 64] as const
const CONNECTIONS_MAX = 64
/** Payments per second for which invoices are prepared, if the warm-up was not slower. */
const PER_SECOND_MAX: Readonly<Record<number, number>> = { 1: 600, 16: 2_000, 64: 3_000 }
/** Invoices for twice the rate of the warm-up are prepared. A faster round ends early for lack of invoices. */
const PREPARED_SHARE = 2
const WARM_SECONDS = 1
const WARM_PER_SECOND = 1_200

/** Prepares invoices for `payments` payments of each of our two sides. */
const sidesOf = async (bench: Bench, connections: number, payments: number) => {
  const { harness, service, caller } = bench
  const count = Math.ceil(payments / PARTS_PER_INVOICE) + connections
  harness.log(`preparing ${2 * count} approved invoices`)
  const ours = async (withReference: boolean) => {
    const next = partsOf(await caller.invoices(count), connections, withReference)
    return payAndCheck(caller, bench.meter, pay(service.addresses, caller, { connections, next }))
  }
  const sides = {
    emmett: payEmmett(bench.emmett, caller, connections),
    express: payElsewhere(bench.bareExpress, caller, connections),
    plain: await ours(false),
    referenced: await ours(true),
  }
  await caller.untilFeedsCaughtUp()
  return sides
}
type Sides = Awaited<ReturnType<typeof sidesOf>>

/** One round of all sides, in alternation, so that other load on the machine affects all. */
const roundOf = async ({ emmett, express, plain, referenced }: Sides, seconds: number): Promise<Round> => ({
  emmett: await emmett(seconds),
  plain: await plain(seconds),
  express: await express(seconds),
  referenced: await referenced(seconds),
})

const roundsAt = async (
  bench: Bench,
  connections: number,
  { seconds, rounds }: Size,
  warmRate: number,
): Promise<Round[]> => {
  const perSecondMax = Math.min(PER_SECOND_MAX[connections] ?? 0, PREPARED_SHARE * warmRate)
  const sides = await sidesOf(bench, connections, perSecondMax * seconds)
  const done: Round[] = []
  while (done.length < rounds) {
    bench.harness.log(`POST /payments at ${connections}, round ${done.length + 1} of ${rounds}`)
    done.push(await roundOf(sides, seconds / rounds))
  }
  return done
}

/** Resolves to the payments per second at the most connections. */
const warmUp = async (bench: Bench): Promise<number> => {
  bench.harness.log('warming up')
  const sides = await sidesOf(bench, CONNECTIONS_MAX, WARM_PER_SECOND * WARM_SECONDS)
  return perSecond((await roundOf(sides, WARM_SECONDS)).plain)
}

const benchOf = async (harness: Harness) => {
  const service = await harness.service()
  const groups = processGroups(service.addresses.pids, service.kafkaPid)
  return {
    harness,
    service,
    bareExpress: await harness.bareExpress(),
    emmett: await harness.emmett(),
    caller: await callerOf(service),
    meter: await openCpuMeter(groups, harness.log),
  }
}
type Bench = Awaited<ReturnType<typeof benchOf>>

const run: Measure['run'] = async (harness, size) => {
  const bench = await benchOf(harness)
  const warmRate = await warmUp(bench)
  const measured = new Map<number, Round[]>()
  for (const connections of CONNECTIONS) measured.set(connections, await roundsAt(bench, connections, size, warmRate))
  const tails = await appendTails(bench, measured, size)
  const inserts = await insertRows(bench, measured, size)
  // Once more, because a payment that appears late would be a second one.
  await bench.caller.checkAnswers()
  return {
    rows: [...ratesRows(bench.service, measured), ...cpuRows(measured), ...tails, ...inserts],
    details: { cpuMsPerPayment: cpuDetails(measured) },
  }
}

const cpuOf = (samples: readonly PaidSample[]) => samples.map(({ cpu }) => cpu ?? {})

const cpuDetails = (measured: ReadonlyMap<number, readonly Round[]>) =>
  [...measured].map(([connections, rounds]) => ({
    connections,
    withoutReference: cpuOf(rounds.map(({ plain }) => plain)),
    withReference: cpuOf(rounds.map(({ referenced }) => referenced)),
  }))

export const payments: Measure = {
  name: 'payments',
  description:
    'POST /payments without and with a reference at 1, 16 and 64 connections, the whole service with embedded services in ' +
    'processes of their own, against Emmett + Express with one bare append to the same Postgres server, and against bare ' +
    'Express that verifies a JWT and echoes a validated body; its CPU time by process; its p99 against that of one ' +
    'append; and the same against durable single-row inserts.',
  run,
}
