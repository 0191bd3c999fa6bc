import { type Caller, PARTS_PER_INVOICE, partOf, paymentRequest, withClient } from './apiClient.ts'
import { WrongAnswers, type SentPayment } from './answers.ts'
import { type Cpu, type CpuMeter, cpuPerOperation } from './processes.ts'
import type { Emmett, RunningService } from './harness.ts'
import { type Load, load } from './loadGenerator.ts'
import type { Sample, Side } from './measure.ts'

const CREATED = 201

/** A sample of the service, with the CPU time of a payment in each process, the feeds' part included. */
export type PaidSample = Sample & { readonly cpu?: Cpu }

/** The next part to be paid on a connection; undefined when no invoice is left. */
export type NextPart = (connection: number) => SentPayment | undefined

/** Each connection pays its own invoice, so that no two connections contend for one stream. */
export const partsOf = (invoices: string[], connections: number, withReference: boolean): NextPart => {
  const current = Array.from({ length: connections }, () => ({ invoice: '', left: 0 }))
  return connection => {
    const mine = current[connection]
    if (mine === undefined) return undefined
    if (mine.left === 0) {
      const invoice = invoices.pop()
      if (invoice === undefined) return undefined
      mine.invoice = invoice
      mine.left = PARTS_PER_INVOICE
    }
    mine.left--
    return partOf(mine.invoice, withReference)
  }
}

/** Pays until the time is over, at a constant rate if there is one, and records each answer with what was sent. */
export const pay = (
  { api }: RunningService['addresses'],
  { headers, answers }: Caller,
  { next, ...rate }: Pick<Load, 'connections' | 'perSecond'> & { readonly next: NextPart },
): Side => {
  const sent: (SentPayment | undefined)[] = []
  return seconds =>
    load({
      base: api,
      ...rate,
      seconds,
      status: CREATED,
      next: connection => {
        const part = next(connection)
        sent[connection] = part
        return part && paymentRequest(headers(), part)
      },
      onBody: (connection, body) => {
        const part = sent[connection]
        if (part) answers.record(part, body)
      },
    })
}

/** The CPU time of a payment ends when the feeds have processed it. */
export const payAndCheck =
  (caller: Caller, meter: CpuMeter | undefined, side: Side) =>
  async (seconds: number): Promise<PaidSample> => {
    const before = await meter?.()
    const sample = await side(seconds)
    await caller.untilFeedsCaughtUp()
    const after = await meter?.()
    await caller.checkAnswers()
    return before && after ? { ...sample, cpu: cpuPerOperation(before, after, sample.count) } : sample
  }

const NO_INVOICE = `inv_${'0'.repeat(26)}`

/** The same requests to a server that needs no invoice. Throws if it answers with another body than it was sent. */
export const payElsewhere = (base: string, { headers }: Caller, connections: number): Side => {
  const references: string[] = []
  return seconds =>
    load({
      base,
      connections,
      seconds,
      status: CREATED,
      next: connection => {
        const part = partOf(NO_INVOICE, true)
        references[connection] = part.reference ?? ''
        return paymentRequest(headers(), part)
      },
      onBody: (connection, body) => {
        if (!body.includes(references[connection] ?? '')) throw new WrongAnswers([`${base} answered ${body}`])
      },
    })
}

const EMMETT_COUNT = 'select count(*)::int as count from emt_messages'

/** Bare appends of Emmett; afterwards its table must have exactly as many more events as were answered. */
export const payEmmett = ({ address, databaseUrl }: Emmett, caller: Caller, connections: number): Side => {
  const side = payElsewhere(address, caller, connections)
  const stored = (): Promise<number> =>
    withClient(databaseUrl, async client => (await client.query<{ count: number }>(EMMETT_COUNT)).rows[0]?.count ?? 0)
  return async seconds => {
    const before = await stored()
    const sample = await side(seconds)
    const added = (await stored()) - before
    if (added === sample.count) return sample
    throw new WrongAnswers([`Emmett answered ${sample.count} requests and stored ${added} events.`])
  }
}
