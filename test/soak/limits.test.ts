import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { anOrder, clientOf } from '../support/client.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

const ROUNDS = 5
const REQUESTS = 600
const PAUSE_MS = 4
/** A client that ignores Retry-After, at a rate below load shedding. */
const REFUSED_PER_SECOND = 250
const TIMES_MAX = 1.2

describe('a caller over its rate limit', function () {
  this.timeout(180_000)
  let dataDir: string
  let service: ServiceProcess
  const agent = new Agent({ keepAlive: true })

  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir, { RATE_LIMITS: 'default=1000000/600,payments=1/600' })
  })
  after(async () => {
    agent.destroy()
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  const ask = (method: string, path: string, token: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, ...(method === 'POST' ? { 'idempotency-key': 'k' } : {}) }
      request(`${service.api}${path}`, { agent, method, headers }, answer => {
        answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
      })
        .on('error', reject)
        .end()
    })

  const timesOf = async (path: string, token: string): Promise<number[]> => {
    const times: number[] = []
    for (let index = 0; index < REQUESTS; index++) {
      const from = performance.now()
      expect(await ask('GET', path, token)).to.equal(200)
      times.push(performance.now() - from)
      await sleep(PAUSE_MS)
    }
    return times
  }
  const p99 = (times: readonly number[]): number =>
    times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0

  it(`raises the p99 of another caller to ${TIMES_MAX} × at most`, async () => {
    const [normal, limited] = await Promise.all(['normal', 'limited'].map(subject => service.token({ subject })))
    const { body } = await clientOf(service.api, normal).post('/orders', anOrder())
    const path = `/orders/${body.id}`
    await ask('POST', '/payments', limited ?? '')
    await timesOf(path, normal ?? '')
    const alone: number[] = []
    const beside: number[] = []
    const statuses = new Set<number>()
    let refused = 0
    // Both are measured in alternation, so that other load on the machine affects them equally.
    for (let round = 0; round < ROUNDS; round++) {
      alone.push(...(await timesOf(path, normal ?? '')))
      const flood = setInterval(() => {
        void ask('POST', '/payments', limited ?? '').then(status => {
          statuses.add(status)
          refused += 1
        })
      }, 1_000 / REFUSED_PER_SECOND)
      beside.push(...(await timesOf(path, normal ?? '')))
      clearInterval(flood)
    }
    const ratio = p99(beside) / p99(alone)
    process.stdout.write(
      `      p99 alone ${p99(alone).toFixed(2)} ms, beside ${refused} refusals ${p99(beside).toFixed(2)} ms: ${ratio.toFixed(2)}\n`,
    )
    expect([...statuses]).to.deep.equal([429])
    expect(refused).to.be.greaterThan(REQUESTS)
    expect(ratio).to.be.at.most(TIMES_MAX)
  })
})
