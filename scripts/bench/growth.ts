import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { WrongAnswers } from './answers.ts'
import { createCaller, withClient } from './apiClient.ts'
import { type Cpu, readMemory, totalOf } from './processes.ts'
import { checkTotals, totalsIn, type Walk, walkPayments, TENANT } from './growthChecks.ts'
import { growthData, type GrowthData } from './growthData.ts'
import { type GrowthRead, measureRead, readsOf } from './growthReads.ts'
import { type FigureName, type Figures, growthRows, type SizeFigures } from './growthRows.ts'
import { type GrowthSide, measureRebuilds, openSide } from './growthSide.ts'
import type { Harness } from './harness.ts'
import type { Measure, Size } from './measure.ts'
import { percentile } from './measure.ts'

const DIRECTORY = '.data/bench-growth'
/** Smaller data is made anew for each run, since the measured payments would enlarge it noticeably. */
const KEPT_FROM_PAYMENTS = 100_000
const STARTS = 3
const REBUILDS = 2
/** The log of a larger size is rebuilt once, which takes long enough. */
const REBUILT_ONCE_FROM_PAYMENTS = 100_000
const READS_PER_ROUND = 200
const PAYMENTS_AT_MANY = 600
const PAYMENTS_AT_ONE = 100
const MANY_CONNECTIONS = 16
const WALKED_IDS = 10_000
/** After a load V8 goes on compiling and collecting for a while. */
const BEFORE_IDLE_MS = 45_000
const IDLE_MS = 20_000
const MB = 1_000_000

const add = (figures: Figures, name: FigureName, value: number): void => {
  figures.set(name, [...(figures.get(name) ?? []), value])
}

const prepare = async (harness: Harness, payments: number) => {
  const directory = resolve(join(DIRECTORY, String(payments)))
  if (payments < KEPT_FROM_PAYMENTS) await rm(directory, { recursive: true, force: true })
  const data = await growthData(directory, payments, harness.log)
  harness.log(`rebuilding the read models of ${payments} payments`)
  const rounds = payments < REBUILT_ONCE_FROM_PAYMENTS ? REBUILDS : 1
  const { seconds, logSize, readModelBytes } = await measureRebuilds(data, rounds, harness.log)
  const figures: Figures = new Map()
  for (const duration of seconds) add(figures, 'rebuild', (1_000_000 * duration) / logSize.events)
  add(figures, 'logBytes', logSize.bytes / data.history.payments)
  add(figures, 'modelBytes', readModelBytes / data.history.payments)
  return { payments, data, figures, events: logSize.events }
}
type Prepared = Awaited<ReturnType<typeof prepare>>

/** The first start, whose feeds have to go through the log, is not measured. */
const measureStarts = async (harness: Harness, prepared: readonly Prepared[]): Promise<void> => {
  for (const { data, payments } of prepared) {
    harness.log(`first start on ${payments} payments`)
    const service = await harness.serviceOn(data.dataDir)
    await openSide(service, harness.log)
    await service.stop()
  }
  for (let round = 1; round <= STARTS; round += 1)
    for (const { data, figures, payments } of prepared) {
      harness.log(`start ${round} of ${STARTS} on ${payments} payments`)
      const service = await harness.serviceOn(data.dataDir)
      add(figures, 'ready', service.readyMs / 1_000)
      await service.stop()
    }
}

type Measured = Prepared & { readonly side: GrowthSide; readonly walk: Walk; readonly reads: readonly GrowthRead[] }

/** Opens the service, and checks what it holds and what it lists. */
const open = async (harness: Harness, prepared: Prepared): Promise<Measured> => {
  const { data, payments } = prepared
  const service = await harness.serviceOn(data.dataDir)
  const side = await openSide(service, harness.log)
  const { headers } = await createCaller(service, TENANT)
  harness.log(`reading the list of ${payments} payments to its end`)
  const walk = await walkPayments(service.addresses.api, headers, Math.max(1, Math.floor(payments / WALKED_IDS)))
  await check(side, data, walk)
  return { ...prepared, side, walk, reads: await readsOf(side, walk) }
}

const check = async (side: GrowthSide, { history }: GrowthData, walk: Walk): Promise<void> => {
  const totals = await withClient(side.service.addresses.postgres, totalsIn)
  checkTotals([...totals, walk.totals], history.payments)
}

const measureIdle = async (measured: readonly Measured[]): Promise<void> => {
  await sleep(BEFORE_IDLE_MS)
  const before: Cpu[] = []
  for (const { side } of measured) before.push(await side.meter())
  await sleep(IDLE_MS)
  for (const [index, { side, figures }] of measured.entries())
    add(figures, 'idle', (100 * (totalOf(await side.meter()) - totalOf(before[index] ?? {}))) / IDLE_MS)
}

const measurePayments = async ({ side, figures }: Measured): Promise<void> => {
  const durations = await side.pay(1, PAYMENTS_AT_ONE)
  add(figures, 'payOne', percentile(durations, 0.5))
  const many = await side.pay(MANY_CONNECTIONS, PAYMENTS_AT_MANY)
  add(figures, 'payMany', percentile(many, 0.5))
  add(figures, 'payCpu', totalOf(many.cpu ?? {}))
}

const measureMemory = async ({ side, figures }: Measured): Promise<void> => {
  const memory = await readMemory(side.groups)
  for (const name of ['service', 'event store', 'Postgres'] as const)
    add(figures, name, (memory[name]?.own ?? Number.NaN) / MB)
  add(figures, 'cache', (memory.Postgres?.cache ?? Number.NaN) / MB)
}

const measureReads = async (measured: readonly Measured[], isWarmUp: boolean): Promise<void> => {
  for (const index of measured[0]?.reads.keys() ?? [])
    for (const size of measured) {
      const { side, figures, reads } = size
      const read = reads[index]
      if (read === undefined) continue
      const { p50Ms, cpuMs } = await measureRead(side, read, READS_PER_ROUND)
      if (isWarmUp) continue
      // Often, because the memory of a process goes up and down with the collection of its garbage.
      await measureMemory(size)
      add(figures, read.name, p50Ms)
      add(figures, `${read.name}Cpu`, cpuMs)
    }
}

const measureRounds = async (harness: Harness, measured: readonly Measured[], rounds: number): Promise<void> => {
  for (const size of measured) await size.side.pay(MANY_CONNECTIONS, PAYMENTS_AT_MANY)
  await measureReads(measured, true)
  for (let round = 1; round <= rounds; round += 1) {
    harness.log(`payments and reads, round ${round} of ${rounds}`)
    for (const size of measured) await measurePayments(size)
    await measureReads(measured, false)
  }
}

const EXPORT_POLL_MS = 100
const EXPORT_MAX_MS = 1_800_000

type Operation = { readonly id: string; readonly status?: string; readonly state?: string }

const jsonOf = async (response: Response): Promise<unknown> => {
  if (!response.ok) throw new Error(`${response.url}: ${await response.text()}`)
  return response.json()
}

/** Throws unless the manifest has exactly these rows. The file is removed, so that runs do not fill the disk. */
const measureExport = async (side: GrowthSide, rows: number) => {
  const { api, postgres } = side.service.addresses
  const { headers } = await createCaller(side.service, TENANT)
  const authorization = headers()[0]?.replace('authorization: ', '') ?? ''
  const request = async (path: string, init: RequestInit = {}): Promise<unknown> =>
    jsonOf(await fetch(`${api}${path}`, { ...init, headers: { authorization, 'content-type': 'application/json' } }))
  const cpuBefore = totalOf(await side.meter())
  const begunMs = performance.now()
  const body = JSON.stringify({ resource: 'payments', format: 'csv' })
  const { id } = (await request('/exports', { method: 'POST', body })) as Operation
  for (let state = ''; state !== 'succeeded'; await sleep(EXPORT_POLL_MS)) {
    state = ((await request(`/operations/${id}`)) as Operation).state ?? ''
    if (state === 'failed' || performance.now() - begunMs > EXPORT_MAX_MS) throw new Error(`The export is ${state}.`)
  }
  const ms = performance.now() - begunMs
  const cpuMs = totalOf(await side.meter()) - cpuBefore
  const { row_count } = (await request(`/exports/${id}/manifest`)) as { readonly row_count: number }
  if (row_count !== rows) throw new WrongAnswers([`An export of ${rows} payments has ${row_count} rows.`])
  await withClient(postgres, client => client.query('delete from export_chunks where operation_id = $1', [id]))
  return { usPerRow: (1_000 * ms) / rows, cpuUsPerRow: (1_000 * cpuMs) / rows }
}

const run = async (harness: Harness, { sizes, rounds }: Size): ReturnType<Measure['run']> => {
  const prepared: Prepared[] = []
  for (const payments of sizes.toSorted((a, b) => a - b)) prepared.push(await prepare(harness, payments))
  await measureStarts(harness, prepared)
  const measured: Measured[] = []
  for (const size of prepared) measured.push(await open(harness, size))
  harness.log('idle')
  await measureIdle(measured)
  await measureRounds(harness, measured, rounds)
  for (const { side, figures, walk } of measured) {
    harness.log(`exporting ${walk.totals.payments} payments`)
    const { usPerRow, cpuUsPerRow } = await measureExport(side, walk.totals.payments)
    add(figures, 'export', usPerRow)
    add(figures, 'exportCpu', cpuUsPerRow)
  }
  for (const { side, data, walk } of measured) await check(side, data, walk)
  const figures: SizeFigures[] = measured
  const named = (payments = 0): string => `at ${payments.toLocaleString('en-US')}`
  return {
    rows: growthRows(figures),
    columns: { ours: named(figures.at(-1)?.payments), reference: named(figures[0]?.payments) },
    details: {
      growth: measured.map(({ payments, events, figures: all }) => ({ payments, events, ...Object.fromEntries(all) })),
    },
  }
}

export const growth: Measure = {
  name: 'growth',
  description:
    'Payments, reads, lists, events, start, rebuild, export, memory and disk at 10,000 and at 1,000,000 payments (--sizes), ' +
    `whose data is made once, through the event store, in ${DIRECTORY}. Only when it is named: it takes an hour.`,
  run,
}
