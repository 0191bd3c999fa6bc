import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { holdsInOneOf } from '../../support/comparedTimes.ts'
import { eventually } from '../../support/eventually.ts'
import {
  quietHead,
  type ServiceProcess,
  startProcess,
  temporaryDirectory,
  writtenSince,
} from '../../support/service.ts'
import { removeFolder } from '../../support/folders.ts'

/** Overload: what cannot begin in time is refused and has no effect. */

const BLOCKED_MAX_MS = 30_000
const ROUNDS = 3
const NOTICED_AFTER = 10
/** More than can begin while the loop is late, and fewer than one caller may have waiting. */
const WHILE_BLOCKED = 400
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
  process.on('SIGWINCH', () => {
    endsAt = performance.now() + ${BLOCKED_MAX_MS}
    const block = () => {
      const until = performance.now() + 120
      while (performance.now() < until);
      if (performance.now() > endsAt) console.log('free')
      else setImmediate(block)
    }
    console.log('blocked')
    block()
  })
`
const TENANT = 'overload'
const UNLIMITED = ['default', 'payments', 'auth_failures'].map(policy => `${policy}=100000000/60`).join(',')

type Answered = {
  readonly status: number
  readonly body: { readonly id: string; readonly [member: string]: unknown }
  readonly headers: IncomingHttpHeaders
}

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

  const expectOverloaded = ({ body, headers }: Answered): void => {
    expect(body).to.include({ status: 503, code: 'overloaded' })
    expect(body['retry']).to.deep.equal({ retryable: true, strategy: 'same_request', after_seconds: 1 })
    expect(headers['retry-after']).to.equal('1')
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

  it('with an event loop that is blocked for 120 ms in every turn refuses what it cannot begin in time, and recovers', async () => {
    // A late loop accepts connections slowly: these are open before.
    const agent = new Agent({ keepAlive: true })
    await Promise.all(Array.from({ length: WHILE_BLOCKED }, () => ask(agent, authorization)))
    const create = (key: string) => ask(agent, authorization, key)
    const mark = service.output().length
    const hasPrinted = (word: string): boolean => service.output().slice(mark).split('\n').includes(word)
    const position = await quietHead(store)
    process.kill(service.pid, 'SIGWINCH')
    await eventually(async () => hasPrinted('blocked'))

    // The delay is measured in windows of 250 ms, while there are requests.
    for (let request = 0; request < NOTICED_AFTER; request++) await client.get('/orders')

    const keys = Array.from({ length: WHILE_BLOCKED }, newKey)
    const answering = Promise.all(keys.map(create))
    for (let round = 0; round < ROUNDS; round++) {
      const [live, ready] = await Promise.all([client.get('/livez'), client.get('/readyz')])
      expect([live.status, ready.status], 'the health endpoints').to.deep.equal([200, 200])
    }
    const answers = await answering
    const refused = keys.filter((_, index) => answers[index]?.status !== 201)
    for (const answer of answers) if (answer.status !== 201) expectOverloaded(answer)
    expect(refused.length, 'refused requests').to.be.greaterThan(1)
    process.kill(service.pid, 'SIGURG')
    await eventually(async () => hasPrinted('free'))

    const [key = '', ...others] = refused.slice(0, 20)
    const again = await eventually(async () => {
      const answer = await create(key)
      return answer.status !== 503 && answer
    })
    expect(again.status).to.equal(201)
    expect(again.headers, 'the refused request was executed').not.to.have.property('idempotent-replayed')
    const outcomes = await Promise.all(
      others.map(each => client.get(`/idempotency-keys/${each}?operation=create_order`)),
    )
    expect(new Set(outcomes.map(({ body }) => body.status))).to.deep.equal(new Set(['never_seen']))
    const accepted = keys.length - refused.length
    expect((await writtenSince(store, position, TENANT)).length).to.equal(accepted + 1)
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
        const { status, body, headers } = await ask(agent, `Bearer ${tokens[index % FLOODING]}`)
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
    const known = new Set(await orderIds(await quietHead(store)))
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

  /** One POST, without the retries of the tests' client. */
  const ask = (agent: Agent, asking: string, key = newKey()) =>
    new Promise<Answered>((resolve, reject) => {
      const body = JSON.stringify(anOrder())
      const headers = {
        authorization: asking,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'idempotency-key': key,
      }
      const outgoing = request(`${service.api}/orders`, { method: 'POST', agent, headers }, answer => {
        let text = ''
        answer.setEncoding('utf8').on('data', chunk => (text += chunk))
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            body: JSON.parse(text) as Answered['body'],
            headers: answer.headers,
          }),
        )
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
})
