import { globSync } from 'node:fs'
import { expect } from 'chai'
import {
  type Measured,
  measureBesideAttack,
  measureBesideAttackers,
  quantile,
  type Turns,
} from '../support/besideAttackers.ts'
import { removeFolder } from '../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

const LONG: Turns = { rounds: 12, roundMs: 10_000, settleMs: 1_000, recoveryMs: 10_000 }
const TURNS: Turns = { rounds: 6, roundMs: 8_000, settleMs: 1_000, recoveryMs: 10_000 }
const FRACTION = 0.99
const TIMES_MAX = 2
const MEMORY_TIMES_MAX = 1.5
const CASE_MAX_MS = 900_000

const p99Of = (rounds: Measured['rounds'], phase: 'alone' | 'attacked'): number =>
  quantile(
    rounds.flatMap(round => round[phase]),
    FRACTION,
  )

const expectServed = ({ rounds, statuses, attackers, memoryMib }: Measured): void => {
  const [alone, attacked] = [p99Of(rounds, 'alone'), p99Of(rounds, 'attacked')]
  const { before, most, after } = memoryMib
  const summary =
    `p99 ${alone.toFixed(1)} ms alone, ${attacked.toFixed(1)} ms attacked (${(attacked / alone).toFixed(2)}); ` +
    `memory ${before.toFixed(0)} MiB before, ${most.toFixed(0)} at most, ${after.toFixed(0)} after`
  process.stdout.write(`      ${summary} ${JSON.stringify(statuses)} ${JSON.stringify(attackers)}\n`)
  expect(Object.keys(statuses), 'statuses').to.deep.equal(['200', '201'])
  expect(attacked / alone, summary).to.be.at.most(TIMES_MAX)
  expect(most, summary).to.be.at.most(before * MEMORY_TIMES_MAX)
}

describe('a normal client beside attackers, for a long time', function () {
  this.timeout(CASE_MAX_MS)

  it(`has a p99 within ${TIMES_MAX} × its own alone beside two that mix many kinds of request`, async () => {
    expectServed(await measureBesideAttackers(LONG))
  })

  for (const file of globSync('attacks/*.ts', { cwd: import.meta.dirname, exclude: ['attacks/attack*.ts'] }).sort())
    it(`has a p99 within ${TIMES_MAX} × its own alone beside the attack of ${file}`, async () => {
      expectServed(await measureBesideAttack(TURNS, new URL(file, import.meta.url)))
    })
})

const AT_ONCE = 300
const AT_ONCE_MAX_MS = 1_000

describe('a caller that is alone', () => {
  let dataDir: string
  let service: ServiceProcess
  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir, { RATE_LIMITS: '', CONCURRENCY_LIMITS: '' })
  })
  after(async () => {
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  it(`has ${AT_ONCE} requests at once answered in ${AT_ONCE_MAX_MS} ms`, async () => {
    const headers = { authorization: `Bearer ${await service.token({ tenant: 'alone' })}` }
    const askAll = async (): Promise<number> => {
      const from = performance.now()
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, () => fetch(`${service.api}/orders?limit=1`, { headers })),
      )
      await Promise.all(answers.map(answer => answer.text()))
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(AT_ONCE).fill(200))
      return performance.now() - from
    }
    // The first opens the connections.
    await askAll()
    const tookMs = await askAll()
    process.stdout.write(`      ${tookMs.toFixed(0)} ms\n`)
    expect(tookMs).to.be.below(AT_ONCE_MAX_MS)
  })
})
