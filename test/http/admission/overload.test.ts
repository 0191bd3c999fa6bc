import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { holdsInOneOf } from '../../support/comparedTimes.ts'
import { quietHead } from '../../support/service.ts'
import { type OverloadedService, startOverloadedService, TENANT } from './overloadFixtures.ts'

/** A flood of requests: what cannot begin in time is refused and has no effect. */

const DELAY_MAX_MS = 200
/** More requests than may be in flight, from several callers, since the share of each caller is limited. */
const FLOOD = 1_300
const FLOODING = 8
const FLOOD_MS = 1_500
/** Few enough for all to be served: they measure the throughput of the service on this machine under its present load. */
const USUAL_CLIENTS = 40
const FLOOD_COST_MAX = 4

/** Runs inside the service: reports the durations of event loop turns. */
const INJECTED = `
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  const turns = monitorEventLoopDelay({ resolution: 5 })
  turns.enable()
  setInterval(() => {
    console.log('turns ' + Math.round(turns.percentile(90) / 1e6))
    turns.reset()
  }, 500).unref()
`

describe('an overloaded service', () => {
  let overloaded: OverloadedService
  before(async () => {
    overloaded = await startOverloadedService(INJECTED)
  })
  after(() => overloaded.close())

  /** The ids of all orders, once the list has reached the position. */
  const orderIds = async (position: bigint): Promise<string[]> => {
    const ids: string[] = []
    const headers = { 'if-min-position': String(position), prefer: 'wait=10' }
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await overloaded.client.get(`/orders?limit=100${cursor && `&cursor=${cursor}`}`, headers)
      ids.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.page.next_cursor
    }
    return ids
  }

  const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

  type Load = {
    readonly created: { id: string; position: bigint }[]
    readonly counts: Record<string, number>
    /** The durations of turns of the service's event loop, in milliseconds. */
    readonly turns: number[]
  }

  /** Concurrent clients, distributed over the callers, each of which sends its next request after a response. */
  const load = async (clients: number, lengthMs: number): Promise<Load> => {
    const { service } = overloaded
    const mark = service.output().length
    const agent = new Agent({ keepAlive: true, maxSockets: clients })
    const created: Load['created'] = []
    const counts: Load['counts'] = {}
    const subjects = Array.from({ length: FLOODING }, (_, index) => `flooding-${index}`)
    const tokens = await Promise.all(subjects.map(subject => service.token({ tenant: TENANT, subject })))
    const until = performance.now() + lengthMs
    const one = async (_: unknown, index: number): Promise<void> => {
      while (performance.now() < until) {
        const { status, body, headers } = await overloaded.createOrder(agent, tokens[index % FLOODING] ?? '')
        counts[status] = (counts[status] ?? 0) + 1
        if (status === 201) created.push({ id: body.id, position: BigInt(String(headers['ledger-position'])) })
        else if (status === 503 || status === 429) await sleep(1_000)
      }
    }
    await Promise.all(Array.from({ length: clients }, one))
    agent.destroy()
    const printed = service
      .output()
      .slice(mark)
      .matchAll(/^turns (\d+)$/gm)
    const turns = [...printed].map(([, ms]) => Number(ms))
    process.stdout.write(`      ${JSON.stringify(counts)}, turns of ${turns.join(' ')} ms\n`)
    return { created, counts, turns }
  }

  it(`with ${FLOOD} concurrent requests serves as many as it can in time, and stores nothing of the others`, async () => {
    await holdsInOneOf(async () => {
      const usual = await load(USUAL_CLIENTS, FLOOD_MS)
      const flooded = await flood()
      expect(flooded.counts['201']).to.be.greaterThan((usual.counts['201'] ?? 0) / FLOOD_COST_MAX)
      expect(medianOf(flooded.turns)).to.be.below(Math.max(DELAY_MAX_MS, FLOOD_COST_MAX * Math.max(...usual.turns)))
    })
  })

  /** More requests than the service can serve, of which it stores those alone that it has not refused. */
  const flood = async (): Promise<Load> => {
    const known = new Set(await orderIds(await quietHead(overloaded.store)))
    const flooded = await load(FLOOD, FLOOD_MS)
    const { created, counts } = flooded
    // Refused by the caller's own limit, without a free slot, or without time.
    expect((counts['429'] ?? 0) + (counts['503'] ?? 0) + (counts['504'] ?? 0)).to.be.greaterThan(0)
    expect(Object.keys(counts).filter(status => !['201', '429', '503', '504'].includes(status))).to.deep.equal([])
    // The effect of a 504 is unknown. Every stored order was acknowledged or got a 504; none was refused.
    const last = created.reduce((a, { position }) => (a > position ? a : position), 0n)
    const matches = (await orderIds(last)).filter(id => !known.has(id))
    const acknowledged = new Set(created.map(({ id }) => id))
    expect([...acknowledged].filter(id => !matches.includes(id))).to.deep.equal([])
    expect(matches.filter(id => !acknowledged.has(id)).length).to.be.at.most(counts['504'] ?? 0)
    return flooded
  }
})
