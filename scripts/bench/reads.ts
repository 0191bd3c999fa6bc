import { WrongAnswers } from './answers.ts'
import { type Caller, callerOf, PARTS_PER_INVOICE } from './apiClient.ts'
import { load, requestOf } from './loadGenerator.ts'
import { compareSides, latencyNote, type Measure, perSecond, rowOf, type Side } from './measure.ts'
import { partsOf, pay } from './paymentSides.ts'
import type { RunningService } from './harness.ts'

const CONNECTIONS = 64
const PAYING_CONNECTIONS = 16
const PAYING_MAX_SECONDS = 120
const WARM_SECONDS = 2
const GOAL = { atLeast: 0.8 }

/** The ids of at least `count` payments, made now unless other measures have made them. */
const paymentIds = async ({ addresses }: RunningService, caller: Caller, count: number): Promise<string[]> => {
  const missing = Math.max(0, count - caller.answers.all().length)
  const invoices = await caller.invoices(Math.ceil(missing / PARTS_PER_INVOICE))
  const connections = Math.min(PAYING_CONNECTIONS, invoices.length)
  await pay(addresses, caller, { connections, next: partsOf(invoices, connections, true) })(PAYING_MAX_SECONDS)
  await caller.checkAnswers()
  return caller.answers
    .all()
    .slice(-count)
    .map(({ id }) => id)
}

/** Reads the payments in turn. Throws if an answer is not the payment that was asked for. */
const reading = (base: string, { headers }: Caller, ids: readonly string[]): Side => {
  let turn = 0
  const requestedIds: string[] = []
  return seconds =>
    load({
      base,
      connections: CONNECTIONS,
      seconds,
      status: 200,
      next: connection => {
        const id = ids[turn++ % ids.length] ?? ''
        requestedIds[connection] = id
        return requestOf('GET', `/payments/${id}`, headers())
      },
      onBody: (connection, body) => {
        if (!body.includes(`"id":"${requestedIds[connection]}"`))
          throw new WrongAnswers([`${base} answered GET /payments/${requestedIds[connection]} with ${body}`])
      },
    })
}

const run: Measure['run'] = async (harness, size) => {
  const service = await harness.service()
  const bare = await harness.bareExpress()
  const caller = await callerOf(service)
  harness.log(`making ${size.paymentsToRead} payments to read`)
  const ids = await paymentIds(service, caller, size.paymentsToRead)
  const [ours, reference] = [reading(service.addresses.api, caller, ids), reading(bare, caller, ids)]
  await reference(WARM_SECONDS)
  await ours(WARM_SECONDS)
  harness.log('GET by id')
  const sample = await compareSides(size, ours, reference)
  const row = rowOf({
    measure: `GET /payments/{id}, ${CONNECTIONS} connections`,
    ours: sample.ours.map(perSecond),
    reference: sample.reference.map(perSecond),
    unit: '/s',
    goal: GOAL,
    note: `${latencyNote(sample.ours)}; bare Express + JWT + one pg select: ${latencyNote(sample.reference)}`,
  })
  return { rows: [row] }
}

export const reads: Measure = {
  name: 'reads',
  description:
    'GET /payments/{id} at 64 connections over 1,000 payments, against bare Express that verifies a JWT and selects the ' +
    'same row by its primary key with node-postgres.',
  run,
}
