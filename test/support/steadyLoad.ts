import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Caller,
  createCaller,
  PARTS_PER_INVOICE,
  partOf,
  PART_AMOUNT,
  withClient,
} from '../../scripts/bench/apiClient.ts'
import {
  type Cpu,
  cpuPerOperation,
  type Memory,
  openCpuMeter,
  processGroups,
  readMemory,
} from '../../scripts/bench/processes.ts'
import { createHarness, type StoppableService } from '../../scripts/bench/harness.ts'
import { inFlight, percentile, perSecond } from '../../scripts/bench/measure.ts'
import { journals, projections } from '../../projections/index.ts'

/** A service under a constant rate of payments for a long time: its latency, CPU time and memory by period. */

const CONNECTIONS = 16
const CALIBRATION_SECONDS = 8
const CALIBRATION_PER_SECOND_MAX = 1_500
const IDLE_MS = 1
const CREATED = 201
const UNAVAILABLE = 503
const REFUSED_PAUSE_MS = 50
const TENANT = 'steady'

/** One period of the load. */
export type Period = {
  readonly minute: number
  readonly payments: number
  /** Requests that were refused with a 503 since the beginning. */
  readonly refused: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Milliseconds a payment. */
  readonly cpu: Cpu
  readonly memory: Memory
}

export type SteadyLoad = {
  /** Measures the payments per second that the service makes at most. */
  readonly fullRate: () => Promise<number>
  readonly run: (
    ratePerSecond: number,
    periods: number,
    periodMs: number,
    onPeriod: (period: Period) => void,
  ) => Promise<void>
  /** The payments that were answered, and those that each read model has. */
  readonly totals: () => Promise<{ readonly answered: number; readonly actual: readonly number[] }>
  readonly close: () => Promise<void>
}

const ACTUAL = `
  select (select count(*) from ${projections.payments.name} where tenant_id = $1 and state = 'succeeded')::int as payments,
    (select sum(amount_paid) / ${PART_AMOUNT} from ${projections.invoices.name} where tenant_id = $1
      and amount_pending = 0 and amount_paid <= amount_due)::int as paid,
    (select count(*) from ${journals.facts.name} where tenant_id = $1 and type = 'payment.succeeded')::int as facts`

const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })

type Part = { readonly invoice: string; readonly key: string }

/** Resolves to the status when the response has ended. */
const post = (api: string, caller: Caller, { invoice, key }: Part): Promise<number> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ ...partOf(invoice, false), currency: 'USD', reference: undefined })
    const authorization = caller.headers()[0]?.replace('authorization: ', '') ?? ''
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': key }
    const outgoing = request(`${api}/payments`, { agent, method: 'POST', headers }, answer => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })

/** Pays in parts of invoices, which are made while those before them are paid. */
const createPayer = (service: StoppableService, caller: Caller) => {
  let parts: string[] = []
  let answered = 0
  let refused = 0
  const addInvoices = async (payments: number): Promise<void> => {
    const invoices = await caller.invoices(Math.ceil(payments / PARTS_PER_INVOICE))
    // The parts of one invoice are far apart, so that its payments do not contend.
    for (let part = 0; part < PARTS_PER_INVOICE; part += 1) parts.push(...invoices)
  }
  return {
    addInvoices,
    answered: () => answered,
    refused: () => refused,
    left: () => parts.length,
    drop: (): void => {
      parts = []
    },
    pay: async (): Promise<void> => {
      const invoice = parts.shift()
      if (invoice === undefined) throw new Error('There are not enough invoices.')
      const part = { invoice, key: randomUUID() }
      let status = await post(service.addresses.api, caller, part)
      // Refused without effect, because other programs had the processor; the latency includes the repetition.
      for (; status === UNAVAILABLE; status = await post(service.addresses.api, caller, part)) {
        refused += 1
        await sleep(REFUSED_PAUSE_MS)
      }
      if (status !== CREATED) throw new Error(`A payment was answered with ${status}.`)
      answered += 1
    },
  }
}

type Payer = ReturnType<typeof createPayer>

/** Pays at a constant rate. A latency counts from the moment at which the request was due, so that it includes any delay. */
const payAtRate = async (payer: Payer, ratePerSecond: number, periodMs: number): Promise<number[]> => {
  const latenciesMs: number[] = []
  const begunMs = performance.now()
  const count = Math.floor((ratePerSecond * periodMs) / 1_000)
  let next = 0
  const lane = async (): Promise<void> => {
    for (let mine = next++; mine < count; mine = next++) {
      const dueMs = begunMs + (mine * 1_000) / ratePerSecond
      await sleep(Math.max(0, dueMs - performance.now()))
      await payer.pay()
      latenciesMs.push(performance.now() - dueMs)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, lane))
  return latenciesMs
}

/** `dataDir` is empty or has the data of an earlier service. */
export const openSteadyLoad = async (dataDir: string, log: (line: string) => void): Promise<SteadyLoad> => {
  const harness = await createHarness(log, { withKafka: false })
  const service = await harness.serviceOn(dataDir)
  const caller = await createCaller(service, TENANT)
  const groups = processGroups(service.addresses.pids, undefined)
  const meter = await openCpuMeter(groups, log)
  const payer = createPayer(service, caller)

  const fullRate = async (): Promise<number> => {
    await payer.addInvoices(CALIBRATION_SECONDS * CALIBRATION_PER_SECOND_MAX)
    const calibrated = await inFlight(CONNECTIONS, CALIBRATION_SECONDS, () =>
      payer.left() > 0 ? payer.pay() : sleep(IDLE_MS),
    )
    payer.drop()
    return perSecond({ ...calibrated, count: payer.answered() })
  }

  const runPeriod = async (minute: number, ratePerSecond: number, periodMs: number): Promise<Period> => {
    const before = await meter?.()
    const [latenciesMs] = await Promise.all([
      payAtRate(payer, ratePerSecond, periodMs),
      payer.addInvoices((ratePerSecond * periodMs) / 1_000),
    ])
    const after = await meter?.()
    const payments = latenciesMs.length
    return {
      minute,
      payments,
      refused: payer.refused(),
      p50Ms: percentile({ latenciesMs }, 0.5),
      p99Ms: percentile({ latenciesMs }, 0.99),
      cpu: before && after ? cpuPerOperation(before, after, payments) : {},
      memory: await readMemory(groups),
    }
  }

  return {
    fullRate,
    run: async (ratePerSecond, periods, periodMs, onPeriod) => {
      await payer.addInvoices((ratePerSecond * periodMs) / 1_000)
      for (let period = 1; period <= periods; period += 1) {
        onPeriod(await runPeriod((period * periodMs) / 60_000, ratePerSecond, periodMs))
        await caller.untilFeedsCaughtUp()
      }
    },
    totals: async () => {
      await caller.untilFeedsCaughtUp()
      const actual = await withClient(service.addresses.postgres, async client => {
        const { rows } = await client.query<Record<string, number>>(ACTUAL, [TENANT])
        return Object.values(rows[0] ?? {})
      })
      return { answered: payer.answered(), actual }
    },
    close: () => harness.stop(),
  }
}
