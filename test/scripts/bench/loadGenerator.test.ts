import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { load, requestOf } from '../../../scripts/bench/loadGenerator.ts'

const PER_SECOND = 200
const SECONDS = 0.5
const STALL_MS = 300

describe('the load generator at a constant rate', () => {
  let server: Server
  let seen = 0
  let answering: Promise<unknown> = Promise.resolve()

  beforeEach(async () => {
    seen = 0
    answering = Promise.resolve()
    server = createServer(async (_, response) => {
      seen += 1
      await answering
      response.end('ok')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(() => server.close())

  const loadAt = (connections: number) =>
    load({
      base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      connections,
      seconds: SECONDS,
      perSecond: PER_SECOND,
      status: 200,
      next: () => requestOf('GET', '/', []),
    })

  it('sends every request that is due, and has the latency of each', async () => {
    const { count, latenciesMs } = await loadAt(8)
    expect({ seen, count }).to.deep.equal({ seen: SECONDS * PER_SECOND, count: SECONDS * PER_SECOND })
    expect(latenciesMs.every(latencyMs => latencyMs > 0)).to.equal(true)
  })

  it('counts the time for which a request waits for a free connection', async () => {
    answering = sleep(STALL_MS)
    const { latenciesMs } = await loadAt(2)
    // The requests that were due during the stall waited for its rest, although only two had been sent.
    const halfAStall = latenciesMs.filter(latencyMs => latencyMs > STALL_MS / 2)
    expect(halfAStall.length).to.be.at.least((PER_SECOND * STALL_MS) / 1000 / 2 - 1)
  })

  it('rejects when a connection has no request left', async () => {
    const error: unknown = await load({
      base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      connections: 1,
      seconds: SECONDS,
      perSecond: PER_SECOND,
      status: 200,
      next: () => undefined,
    }).catch((reason: unknown) => reason)
    expect(error).to.be.an('error').with.property('message', 'A connection has no request left.')
  })
})
