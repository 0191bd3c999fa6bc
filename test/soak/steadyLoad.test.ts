import { expect } from 'chai'
import { medianOf } from '../../scripts/bench/measure.ts'
import { openSteadyLoad, type Period, type SteadyLoad } from '../support/steadyLoad.ts'
import { temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

/** `SOAK_MINUTES=60 npm run test:soak` for the hour; `SOAK_RATE` sets the payments per second in place of half the most. */
const MINUTES = Number(process.env['SOAK_MINUTES'] || 6)
const RATE = Number(process.env['SOAK_RATE'] || 0)
const PERIODS_MIN = 12
const PERIODS = Math.max(PERIODS_MIN, Math.round(MINUTES))
const PERIOD_MS = (MINUTES * 60_000) / PERIODS
const MEMORY_TIMES_MAX = 1.3
const CPU_TIMES_MAX = 1.3
/** Other programs on the machine raise the latency of some periods, hence the wider limit for the median of all. */
const LATENCY_TIMES_MAX = 2
const LEFT_FOR_PREPARATION_MS = 600_000
const MB = 1_000_000

const PROCESSES = ['service', 'event store', 'Postgres'] as const

const lineOf = ({ minute, payments, refused, p50Ms, p99Ms, cpu, memory }: Period): string =>
  [
    `minute ${minute.toFixed(1)}: ${payments} payments, ${refused} refused so far, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`,
    `CPU ${PROCESSES.map(name => `${name} ${(cpu[name] ?? 0).toFixed(2)}`).join(', ')} ms a payment`,
    `memory ${PROCESSES.map(name => `${name} ${((memory[name]?.own ?? 0) / MB).toFixed(0)}`).join(', ')} MB`,
  ].join('; ')

describe(`${MINUTES} minutes at half load`, function () {
  this.timeout(MINUTES * 60_000 * 2 + LEFT_FOR_PREPARATION_MS)
  let dataDir: string
  let load: SteadyLoad
  const periods: Period[] = []
  const say = (line: string): void => void process.stdout.write(`      ${line}\n`)

  /** The last third against the second. In the first one the caches, and the heap with them, reach their size. */
  const growthOf = (figure: (period: Period) => number): number => {
    const third = Math.floor(PERIODS / 3)
    const median = (some: readonly Period[]): number => medianOf(some.map(figure))
    return median(periods.slice(-third)) / median(periods.slice(third, -third))
  }

  before(async () => {
    dataDir = await temporaryDirectory()
    load = await openSteadyLoad(dataDir, () => undefined)
    const rate = RATE || (await load.fullRate()) / 2
    say(`${rate.toFixed(0)} payments/s`)
    await load.run(rate, PERIODS, PERIOD_MS, period => {
      periods.push(period)
      say(lineOf(period))
    })
  })
  after(async () => {
    await load?.close()
    await removeFolder(dataDir)
  })

  it('loses and doubles no payment', async () => {
    const { answered, actual } = await load.totals()
    expect(actual).to.deep.equal(actual.map(() => answered))
  })

  for (const name of PROCESSES)
    it(`leaves the memory of ${name} as it is, without Postgres' cache`, () => {
      expect(growthOf(({ memory }) => memory[name]?.own ?? Number.NaN)).to.be.at.most(MEMORY_TIMES_MAX)
    })

  it('leaves the CPU time of a payment as it is', () => {
    const total = ({ cpu }: Period): number => PROCESSES.reduce((sum, name) => sum + (cpu[name] ?? Number.NaN), 0)
    expect(growthOf(total)).to.be.at.most(CPU_TIMES_MAX)
  })

  it('leaves the latency as it is', () => {
    expect(growthOf(({ p50Ms }) => p50Ms)).to.be.at.most(LATENCY_TIMES_MAX)
  })
})
