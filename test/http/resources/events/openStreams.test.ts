import { expect } from 'chai'
import { readModels } from '../../../../src/feeds/readModels.ts'
import { decode } from '../../../../src/feeds/decode.ts'
import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { EVENT_STREAMS_POOL_MAX } from '../../../../src/compose/databasePools.ts'
import { createTail } from '../../../../src/http/reading/tail.ts'
import type { Authenticate } from '../../../../src/http/access/accessControl.ts'
import type { Principal } from '../../../../src/identity/principal.ts'
import type { Database, Sql } from '../../../../src/ports.ts'
import { anOrder, clientOf, inParallel, newKey, retryingFetch } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService, type TestService } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'

const SSE = 'text/event-stream'
const AT_ONCE_MAX = 20
const FACTS = 30

type Opened = { readonly status: number; readonly response: Response; readonly close: () => void }
type Sent = { readonly id: string; readonly subject: string }

describe('event streams and waiting requests', () => {
  let service: TestService
  let tenant: string

  before(async () => {
    service = await sharedService()
    tenant = `streams-${newKey().slice(0, 8)}`
    const client = clientOf(service.api, await service.token({ tenant }))
    await inParallel(8, Array.from({ length: FACTS }), () => client.post('/orders', anOrder()))
    await eventually(async () => (await client.get('/events?limit=100')).body.items.length === FACTS)
  })

  const opened: Opened[] = []
  const open = async (api: string, headers: Readonly<Record<string, string>>, query = ''): Promise<Opened> => {
    const abort = new AbortController()
    const response = await retryingFetch(`${api}/events${query}`, {
      headers: { accept: SSE, ...headers },
      signal: abort.signal,
    })
    const one = { status: response.status, response, close: () => abort.abort() }
    opened.push(one)
    return one
  }
  afterEach(() => {
    for (const { close } of opened.splice(0)) close()
  })
  const bearer = async (subject: string) => ({ authorization: `Bearer ${await service.token({ tenant, subject })}` })

  /** A variant has the default limits, which the shared service raises. Its callers are named by a header. */
  let limited: Variant
  before(async () => {
    const authenticate: Authenticate = async ({ headers }) => ({
      ...caller,
      tenant,
      subject: String(headers['x-subject']),
    })
    limited = await startVariant(service, { authenticate })
  })
  after(() => limited.close())
  const named = (subject: string) => ({ 'x-subject': subject })

  /** The first `count` facts of a stream. */
  const receive = async ({ response }: Opened, count: number): Promise<Sent[]> => {
    const sent: Sent[] = []
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (data !== undefined) sent.push(JSON.parse(data) as Sent)
      }
      if (sent.length >= count) break
    }
    return sent
  }

  it('are limited for each caller: a stream above the limit gets 429 until another one is closed', async () => {
    const one = named('one')
    const streams = await Promise.all(Array.from({ length: AT_ONCE_MAX }, () => open(limited.api, one)))
    expect(streams.map(({ status }) => status)).to.deep.equal(streams.map(() => 200))
    const refused = await open(limited.api, one)
    expect(refused.status).to.equal(429)
    expect(Number(refused.response.headers.get('retry-after'))).to.be.greaterThan(0)
    expect(await refused.response.json()).to.include({ code: 'rate_limited', category: 'capacity' })
    expect((await open(limited.api, named('another'))).status).to.equal(200)
    streams[0]?.close()
    await eventually(async () => (await open(limited.api, one)).status === 200)
  })

  it('occupy no slot for a response without a body', async () => {
    const one = named('curious')
    for (let n = 0; n <= AT_ONCE_MAX; n += 1) {
      const answer = await retryingFetch(`${limited.api}/events`, { method: 'HEAD', headers: { accept: SSE, ...one } })
      expect(answer.status).to.equal(200)
    }
  })

  it('that wait for a position are limited for each caller too, without effect on others', async () => {
    const headers = { 'if-min-position': '4611686018427387904', prefer: 'wait=3' }
    const [one, another] = [named('waiting'), named('another')]
    const ask = async (subject: object): Promise<number> =>
      (await retryingFetch(`${limited.api}/orders`, { headers: { ...headers, ...subject } })).status
    const many = Array.from({ length: AT_ONCE_MAX + 5 }, () => ask(one))
    const other = ask(another)
    const statuses = (await Promise.all(many)).toSorted((a, b) => a - b)
    expect(statuses).to.deep.equal([
      ...Array.from({ length: 5 }, () => 429),
      ...Array.from({ length: AT_ONCE_MAX }, () => 503),
    ])
    expect(await other).to.equal(503)
  })

  describe('of many callers that read from the beginning', () => {
    const STREAMS = 60
    let variant: Variant
    let atOnce = 0
    let atOnceMax = 0
    let ofRequests: string[]
    let calls = 0

    before(async () => {
      ofRequests = []
      const counted =
        ({ sql }: Database): Sql =>
        async (text, values) => {
          atOnce += 1
          atOnceMax = Math.max(atOnceMax, atOnce)
          try {
            return await sql(text, values)
          } finally {
            atOnce -= 1
          }
        }
      variant = await startVariant(service, {
        authenticate: async (): Promise<Principal> => ({ ...caller, tenant, subject: `reader-${calls++ % 6}` }),
        services: usual => ({
          ...usual,
          database: {
            ...usual.database,
            sql: (text, values) => {
              ofRequests.push(text)
              return usual.database.sql(text, values)
            },
          },
          tail: createTail({
            database: { sql: counted(usual.database) },
            connections: EVENT_STREAMS_POOL_MAX,
            world: usual.ledger.world,
          }),
        }),
      })
    })
    after(() => variant.close())

    it('share a few connections of their own, and each gets every fact', async () => {
      const streams = await Promise.all(Array.from({ length: STREAMS }, () => open(variant.api, {})))
      const received = await Promise.all(streams.map(stream => receive(stream, FACTS)))
      const client = clientOf(service.api, await service.token({ tenant }))
      const { items } = (await client.get('/events?limit=100')).body
      const expected = items.map(({ id }: Sent) => id)
      for (const sent of received) expect(sent.map(({ id }) => id)).to.deep.equal(expected)
      expect(atOnceMax).to.be.within(1, EVENT_STREAMS_POOL_MAX)
      expect(ofRequests).to.deep.equal([])
    })
  })

  describe('that follow the tail', () => {
    const STREAMS = 40
    const NEW = 5
    const FILTERS = 2
    const followed = `followed-${newKey().slice(0, 8)}`
    let variant: Variant
    let calls = 0
    let reads = 0
    let sealed = 0
    const serialized = new Map<string, number>()

    /** Counts each serialization of the fact. */
    const counting = (event: { readonly id: string }) => ({
      ...event,
      toJSON(this: object) {
        serialized.set(event.id, (serialized.get(event.id) ?? 0) + 1)
        return { ...this, toJSON: undefined }
      },
    })

    before(async () => {
      const counted = async (sql: Sql, text: string, values: readonly unknown[] = []) => {
        const rows = await sql(text, values)
        if (text.includes('is_cut')) reads += 1
        return rows.map(row =>
          'event' in row && row['event'] ? { ...row, event: counting(row['event'] as never) } : row,
        )
      }
      variant = await startVariant(service, {
        authenticate: async (): Promise<Principal> => ({
          ...caller,
          tenant: followed,
          subject: `follower-${calls++ % 10}`,
        }),
        services: usual => ({
          ...usual,
          cursors: {
            ...usual.cursors,
            encrypt: (binding, key) => {
              sealed += 1
              return usual.cursors.encrypt(binding, key)
            },
          },
          tail: createTail({
            database: { sql: ((text, values) => counted(usual.database.sql, text, values)) as Sql },
            connections: EVENT_STREAMS_POOL_MAX,
            world: usual.ledger.world,
          }),
        }),
      })
    })
    after(() => variant.close())

    it('share one serialization and one id of each fact for each filter, and get every fact in order', async () => {
      const client = clientOf(service.api, await service.token({ tenant: followed }))
      const from = 'from_position=0'
      const queries = Array.from({ length: STREAMS }, (_, n) => `?${from}${n % 2 ? '&type=order.created' : ''}`)
      const streams = await Promise.all(queries.map(query => open(variant.api, {}, query)))
      await eventually(async () => reads >= STREAMS)
      expect(sealed, 'ids of facts before the first').to.equal(0)
      const received = Promise.all(streams.map(stream => receive(stream, NEW + 1)))
      // When the first fact has arrived, every stream follows the tail.
      await client.post('/orders', anOrder())
      await eventually(async () => sealed >= FILTERS)
      sealed = 0
      for (let n = 0; n < NEW; n += 1) await client.post('/orders', anOrder())
      const all = await received
      const { items } = (await client.get(`/events?limit=100&${from}`)).body
      const expected = items.map(({ id }: Sent) => id)
      expect(items.map(({ type }: { type: string }) => type)).to.deep.equal(Array(NEW + 1).fill('order.created'))
      expect(reads, 'no stream reads the history again').to.equal(STREAMS)
      for (const sent of all) expect(sent.map(({ id }) => id)).to.deep.equal(expected)
      const [, ...ofNew] = expected.map((id: string) => serialized.get(id))
      expect(ofNew).to.deep.equal(ofNew.map(() => FILTERS))
      expect(sealed).to.equal(FILTERS * NEW)
    })
  })

  it('get a fact that was held back when it is released, like readers of pages', async () => {
    const client = clientOf(service.api, await service.token({ tenant }))
    const database = openDatabase({ connectionString: service.addresses.postgres })
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const { items } = (await client.get('/events?limit=100')).body
    const held = items[7] as { readonly subject: string; readonly position: string; readonly id: string }
    const { position } = held
    // A parked key is simulated by the deletion of its rows; test/feeds/arrivalOrder.test.ts tests the projector.
    await database.sql('delete from facts_v1 where position = $1', [position])
    const { items: others, page } = (await client.get('/events?limit=100')).body
    expect(others).to.have.length(items.length - 1)
    const { next_cursor: cursor } = page
    const stream = await open(service.api, await bearer('late'), `?cursor=${cursor}`)
    const received = receive(stream, 1)
    for await (const stored of store.readStream(`order-${held.subject}`)) {
      if (stored.id !== held.id) continue
      const model = readModels.find(({ name }) => name === 'facts_v1') ?? expect.fail()
      await database.transaction(async sql => {
        await sql(`select position from checkpoints where name = 'facts_v1' for update`)
        await model.writeLate?.(sql, decode({ ...stored, position: BigInt(position) }).recorded)
      })
    }
    expect((await received).map(({ id }) => id)).to.deep.equal([held.id])
    const { items: late } = (await client.get(`/events?limit=100&cursor=${cursor}`)).body
    expect(late.map(({ id }: Sent) => id)).to.deep.equal([held.id])
    const { items: whole } = (await client.get('/events?limit=100')).body
    expect(whole.map(({ id }: Sent) => id)).to.deep.equal([...others.map(({ id }: Sent) => id), held.id])
    await Promise.all([database.close(), store.close()])
  })
})
