import { callerOf, PARTS_PER_INVOICE, paymentRequest, waitForFeeds } from './apiClient.ts'
import { load, requestOf } from './loadGenerator.ts'
import { compareSides, latencyNote, type Measure, perSecond, rowOf, type Side } from './measure.ts'
import type { RunningService } from './harness.ts'

/** Benchmark: GET /payments/{id} against bare Express with one select. */

const CONNECTIONS = 64
const INVOICES = 50
const WARM_SECONDS = 2
const GOAL = { atLeast: 0.6 }

/** The ids of newly created payments. */
const paid = async ({ addresses }: RunningService, headers: readonly string[], invoices: readonly string[]) => {
  const ids: string[] = []
  for (const invoice of invoices.flatMap(id => Array.from({ length: PARTS_PER_INVOICE }, () => id))) {
    const [head = '', body = ''] = paymentRequest(headers, invoice).split('\r\n\r\n')
    const lines = head
      .split('\r\n')
      .slice(2)
      .map(line => line.split(': ', 2) as [string, string])
    const response = await fetch(`${addresses.api}/payments`, {
      method: 'POST',
      headers: Object.fromEntries(lines.filter(([name]) => name !== 'content-length')),
      body,
    })
    ids.push(((await response.json()) as { id: string }).id)
  }
  return ids
}

const run: Measure['run'] = async (harness, { seconds }) => {
  const service = await harness.service()
  const bare = await harness.bareExpress()
  const { headers, invoices } = await callerOf(service)
  harness.log(`making ${INVOICES * PARTS_PER_INVOICE} payments to read`)
  const ids = await paid(service, headers, await invoices(INVOICES))
  await waitForFeeds(service)
  let turn = 0
  const next = (): string => requestOf('GET', `/payments/${ids[turn++ % ids.length]}`, headers)
  const reading =
    (base: string): Side =>
    each =>
      load({ base, connections: CONNECTIONS, seconds: each, next, status: 200 })
  await reading(bare)(WARM_SECONDS)
  await reading(service.addresses.api)(WARM_SECONDS)
  harness.log('GET by id')
  const sample = await compareSides(seconds, reading(service.addresses.api), reading(bare))
  return [
    rowOf({
      measure: `GET /payments/{id}, ${CONNECTIONS} connections`,
      ours: perSecond(sample.ours),
      reference: perSecond(sample.reference),
      unit: '/s',
      goal: GOAL,
      note: `${latencyNote(sample.ours)}; bare Express + JWT + one pg select: ${latencyNote(sample.reference)}`,
    }),
  ]
}

export const reads: Measure = {
  name: 'reads',
  description:
    'GET /payments/{id} at 64 connections over 1,000 payments, against bare Express that verifies a JWT and selects the ' +
    'same row by its primary key with node-postgres.',
  run,
}
