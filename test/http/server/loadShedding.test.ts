import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { type Answer, anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { holdsInOneOf } from '../../support/comparedTimes.ts'
import { eventually } from '../../support/eventually.ts'
import {
  quietHead,
  type ServiceProcess,
  startProcess,
  temporaryDirectory,
  writtenSince,
} from '../../support/service.ts'
import { sendOnce } from '../../support/rawHttp.ts'
import { removeFolder } from '../../support/folders.ts'

/** Overload: excess requests are refused at once and have no effect. */

const BLOCKED_MAX_MS = 30_000
const ROUNDS = 3
const DELAY_MAX_MS = 200
/** More requests than may be in flight, from several callers, since the share of each caller is limited. */
const FLOOD = 1_300
const FLOODING = 8
const FLOOD_MS = 2_500
/** Few enough for all to be served: they measure the throughput of the service on this machine under its present load. */
const USUAL_CLIENTS = 40
const FLOOD_COST_MAX = 4

/** Runs inside the service: reports the durations of event loop turns, and blocks the loop on a signal. */
const INJECTED = `
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  const turns = monitorEventLoopDelay({ resolution: 5 })
  turns.enable()
  setInterval(() => {
    console.log('turns ' + Math.round(turns.percentile(90) / 1e6))
    turns.reset()
  }, 500).unref()
  let endsAt = 0
  process.on('SIGURG', () => {
    endsAt = 0
    console.log('released')
  })
  const blocks = (busyMs, freeMs) => () => {
    endsAt = performance.now() + ${BLOCKED_MAX_MS}
    const block = () => {
      const until = performance.now() + busyMs
      while (performance.now() < until);
      if (performance.now() > endsAt) console.log('free')
      else if (freeMs > 0) setTimeout(block, freeMs)
      else setImmediate(block)
    }
    console.log('blocked')
    block()
  }
  process.on('SIGWINCH', blocks(120, 0))
  process.on('SIGCONT', blocks(180, 50))
`
const TENANT = 'overload'
const UNLIMITED = ['default', 'payments', 'auth_failures'].map(policy => `${policy}=100000000/60`).join(',')

describe('an overloaded service', () => {
  let service: ServiceProcess
  let dataDir: string
  let client: Client
  let store: EventStore
  let authorization: string
  before(async () => {
    dataDir = await temporaryDirectory()
    const options = `--import data:text/javascript,${encodeURIComponent(INJECTED)}`
    service = await startProcess(dataDir, { NODE_OPTIONS: options, RATE_LIMITS: UNLIMITED })
    const token = await service.token({ tenant: TENANT })
    authorization = `Bearer ${token}`
    client = clientOf(service.api, token)
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  // Waits for the handler: of two pending signals the kernel delivers that of the lower number first, so that the signal which
  // ends the block could follow the next test's signal which begins one.
  afterEach(async () => {
    const mark = service.output().length
    process.kill(service.pid, 'SIGURG')
    await eventually(() => service.output().slice(mark).includes('released'))
  })
  after(async () => {
    await store.close()
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  /** One POST, without the retries of the tests' client. */
  const create = (key: string): Promise<Answer> => {
    const headers = { Authorization: authorization, 'Content-Type': 'application/json', 'Idempotency-Key': key }
    const body = JSON.stringify(anOrder())
    return sendOnce(service.api, { method: 'POST', path: '/orders', headers: Object.entries(headers), body })
  }

  const expectOverloaded = (answer: Answer): void => {
    expect(answer.body, answer.text).to.include({ status: 503, code: 'overloaded' })
    expect(answer.body.retry).to.deep.equal({ retryable: true, strategy: 'same_request', after_seconds: 1 })
    expect(answer.headers.get('retry-after')).to.equal('1')
  }

  /** The ids of all orders, once the list has reached the position. */
  const orderIds = async (position: bigint): Promise<string[]> => {
    const ids: string[] = []
    const headers = { 'if-min-position': String(position), prefer: 'wait=10' }
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await client.get(`/orders?limit=100${cursor && `&cursor=${cursor}`}`, headers)
      ids.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.page.next_cursor
    }
    return ids
  }

  for (const [what, signal] of [
    ['that is blocked for 120 ms in every turn', 'SIGWINCH'],
    ['that is blocked for 180 ms at a time, with short pauses', 'SIGCONT'],
  ] as const)
    it(`with an event loop ${what} refuses requests with Retry-After, and recovers`, async () => {
      const mark = service.output().length
      const hasPrinted = (word: string): boolean => service.output().slice(mark).split('\n').includes(word)
      process.kill(service.pid, signal)
      let isNoticed = false
      while (!isNoticed && !hasPrinted('free')) {
        const { status } = await create(newKey())
        if (status === 503) isNoticed = true
        else expect(status).to.equal(201)
      }
      expect(isNoticed, 'the blocked service refused a request').to.equal(true)

      const position = await quietHead(store)
      const refused: string[] = []
      let accepted = 0
      for (let round = 0; round < ROUNDS; round++) {
        const keys = Array.from({ length: 5 }, newKey)
        const [answers, live, ready] = await Promise.all([
          Promise.all(keys.map(create)),
          client.get('/livez'),
          client.get('/readyz'),
        ])
        // The event loop is measured in windows. A window between two long turns may be short, and then admits a
        // request.
        for (const [index, answer] of answers.entries()) {
          if (answer.status === 201) {
            accepted += 1
            continue
          }
          expectOverloaded(answer)
          refused.push(keys[index] ?? '')
        }
        expect([live.status, ready.status], 'the health endpoints').to.deep.equal([200, 200])
      }
      expect(accepted, 'accepted requests').to.be.at.most(refused.length)
      process.kill(service.pid, 'SIGURG')
      await eventually(async () => hasPrinted('free'))

      const [key = ''] = refused
      const again = await eventually(async () => {
        const answer = await create(key)
        return answer.status !== 503 && { answer, before: await store.head() }
      })
      expect(again.answer.status).to.equal(201)
      expect(again.answer.headers.has('idempotent-replayed'), 'the refused request was executed').to.equal(false)
      const events = await Promise.all(
        refused.slice(1).map(each => client.get(`/idempotency-keys/${each}?operation=create_order`)),
      )
      expect(new Set(events.map(({ body }) => body.status))).to.deep.equal(new Set(['never_seen']))
      expect((await writtenSince(store, position, TENANT)).length).to.be.at.most(2 + accepted)
    })

  const medianOf = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

  type Load = {
    readonly created: { id: string; position: bigint }[]
    readonly counts: Record<string, number>
    /** The durations of turns of the service's event loop, in milliseconds. */
    readonly turns: number[]
  }

  /** Concurrent clients, distributed over the callers, each of which sends its next request after a response. */
  const load = async (clients: number, lengthMs: number): Promise<Load> => {
    const mark = service.output().length
    const agent = new Agent({ keepAlive: true, maxSockets: clients })
    const created: Load['created'] = []
    const counts: Load['counts'] = {}
    const subjects = Array.from({ length: FLOODING }, (_, index) => `flooding-${index}`)
    const tokens = await Promise.all(subjects.map(subject => service.token({ tenant: TENANT, subject })))
    const until = performance.now() + lengthMs
    const one = async (_: unknown, index: number): Promise<void> => {
      while (performance.now() < until) {
        const { status, body, position } = await ask(agent, `Bearer ${tokens[index % FLOODING]}`)
        counts[status] = (counts[status] ?? 0) + 1
        if (status === 201) created.push({ id: body.id, position: BigInt(position) })
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
    const known = new Set(await orderIds(await quietHead(store)))
    const flooded = await load(FLOOD, FLOOD_MS)
    const { created, counts } = flooded
    // Refused by the caller's own limit, without a free slot, or without time.
    expect((counts['429'] ?? 0) + (counts['503'] ?? 0) + (counts['504'] ?? 0)).to.be.greaterThan(0)
    expect(Object.keys(counts).filter(status => !['201', '429', '503', '504'].includes(status))).to.deep.equal([])
    // The effect of a 504 is unknown. Every stored order was acknowledged or got a 504; none was refused.
    const last = created.reduce((a, { position }) => (a > position ? a : position), 0n)
    const found = (await orderIds(last)).filter(id => !known.has(id))
    const acknowledged = new Set(created.map(({ id }) => id))
    expect([...acknowledged].filter(id => !found.includes(id))).to.deep.equal([])
    expect(found.filter(id => !acknowledged.has(id)).length).to.be.at.most(counts['504'] ?? 0)
    return flooded
  }

  const ask = (agent: Agent, asking: string) =>
    new Promise<{ status: number; body: { id: string }; position: string }>((resolve, reject) => {
      const body = JSON.stringify(anOrder())
      const headers = {
        authorization: asking,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }
      const asked = request(`${service.api}/orders`, { method: 'POST', agent, headers }, answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', chunk => (text += chunk))
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            body: JSON.parse(text) as { id: string },
            position: String(answer.headers['ledger-position'] ?? '0'),
          }),
        )
      })
      asked.on('error', reject)
      asked.end(body)
    })
})
