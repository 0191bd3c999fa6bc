import { Agent, request } from 'node:http'
import { expect } from 'chai'
import { NEWEST_VERSION } from '../../src/http/versions/index.ts'
import { type Answer, anOrder, approvedInvoice, type Client, clientOf, inParallel } from '../support/client.ts'
import { checkResponse } from '../support/openapiCheck.ts'
import { isOverloaded, newKey, parsedJson, retryWhile, pay } from '../support/client.ts'
import { type Document, type RandomRequest, randomRequests } from '../support/randomRequests.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'
import { breadth } from '../support/breadth.ts'

/** Random requests: those that openapi.json describes, and slightly invalid ones. */

const TENANT = 'random'
const REQUESTS = breadth(1_500, 20_000)
const CONCURRENCY = 24
/** A token lives for five minutes, less than the test on a slow machine. */
const REQUESTS_PER_TOKEN = 1_000
const RARE_MAX = 100_000
/** The deadline of a request is 10 s; the rest is for a busy machine. */
const ANSWER_MAX_MS = 120_000
/** Refusals of a service that gets too little processor time. The request is sent again, as often as for load shedding. */
const BUSY_CODES = new Set(['overloaded', 'dependency_unavailable', 'deadline_exceeded'])

/** Whether the request names a position, or a time, that the read models may not have reached. */
const namesPosition = ({ operation, path, headers }: RandomRequest): boolean =>
  headers['If-Min-Position'] !== undefined ||
  operation === 'read_events_manifest' ||
  /[?&]as_of(?:_position)?=/.test(path)

const isBusy = (answer: Answer): boolean =>
  isOverloaded(answer) || BUSY_CODES.has((answer.body as { code?: string } | undefined)?.code ?? '')
const requested = process.env['RANDOM_REQUESTS_SEED'] ?? ''
const seed = requested === '' ? Math.floor(Math.random() * 2 ** 31) : Number(requested)
const LIMITS =
  'default=100000000/60,payments=100000000/60,exports=60/60,auth_failures=100000000/60,' +
  'replays=100000000/60,tenant_replays=100000000/60'

describe(`${REQUESTS} random requests (RANDOM_REQUESTS_SEED=${seed})`, function () {
  this.timeout(600_000)
  let service: ServiceProcess
  let dataDir: string
  let client: Client
  let token: string
  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir, { RATE_LIMITS: LIMITS, LOG_LEVEL: 'warn', OPERATORS_TENANT: TENANT })
    token = await service.token({ tenant: TENANT })
    client = clientOf(service.api, token)
  })
  after(async () => {
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  /** Valid values for parameters: ids of resources in every state, entity tags, keys, cursors, names of documents. */
  const seeds = async (): Promise<string[]> => {
    const actual: string[] = [NEWEST_VERSION]
    for (let round = 0; round < 6; round++) {
      const draft = await client.post('/invoices', { order_id: (await client.post('/orders', anOrder())).body.id })
      const { orderId, invoiceId, etag } = await approvedInvoice(client)
      const key = newKey()
      const paid = await pay(client, { invoice_id: invoiceId, amount: 100, currency: 'USD' }, key)
      const deferred = { invoice_id: invoiceId, amount: 50, currency: 'USD', settlement: 'deferred' }
      const pending = await pay(client, deferred)
      const made = await client.post('/exports', { resource: 'orders', format: 'csv' })
      const page = (await client.get('/orders?limit=1')).body.page
      const open = await client.post('/orders', anOrder())
      const subscribed = await client.post('/subscriptions', { types: ['invoice.paid'], start: 'beginning' })
      const issued = await client.post('/api-keys', { name: 'any', scopes: ['orders:read'] })
      const { items } = (await client.get(`/orders/${orderId}/history`)).body
      actual.push(subscribed.body.id, issued.body.id, 'invoice.paid.v1.json', items[0].event_id)
      const ids = [orderId, invoiceId, draft.body.id, paid.body.id, pending.body.id, made.body.id, open.body.id]
      actual.push(...ids, etag, open.headers.get('etag') ?? '', key, ...(page.next_cursor ? [page.next_cursor] : []))
    }
    return actual
  }

  const ask = (agent: Agent, { method, path, headers, body }: RandomRequest): Promise<Answer & { tookMs: number }> =>
    new Promise((resolve, reject) => {
      const startedAtMs = performance.now()
      const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
      const all = { Authorization: `Bearer ${token}`, ...headers, ...length }
      const outgoing = request(`${service.api}${path}`, { method, agent, headers: all }, incoming => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          // An event stream does not end by itself.
          if (incoming.headers['content-type'] === 'text/event-stream') incoming.destroy()
        })
        incoming.once('close', () => {
          const text = Buffer.concat(chunks).toString()
          const pairs = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)])
          const tookMs = performance.now() - startedAtMs
          resolve({
            status: incoming.statusCode ?? 0,
            headers: new Headers(pairs),
            text,
            body: parsedJson(text),
            tookMs,
          })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })

  it('get a response in time, as openapi.json declares, and without an internal error', async () => {
    const document = (await client.get('/openapi.json')).body as Document
    const codes = document.components.schemas['Problem']?.properties?.['code']?.enum ?? []
    const generate = randomRequests(document, seed, [...codes.map(String), ...(await seeds())])
    const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY })
    const statuses: Record<string, number> = {}
    const succeeded = new Set<string>()
    let slowestMs = 0
    const sendNext = async (requested: RandomRequest, index: number): Promise<void> => {
      if (index % REQUESTS_PER_TOKEN === 0) token = await service.token({ tenant: TENANT })
      const description = `request ${index} of seed ${seed}: ${JSON.stringify(requested)}`
      const answer = await retryWhile(() => ask(agent, requested), isBusy).catch((error: NodeJS.ErrnoException) => {
        // A file that another request deletes meanwhile is cut off.
        if (requested.operation === 'read_export' && error.code === 'ECONNRESET') return undefined
        throw new Error(`${description}: ${error.message}`)
      })
      if (answer === undefined) return
      const { status, text, tookMs } = answer
      const code = (answer.body as { code?: string } | undefined)?.code
      // A position that the log has not reached is answered with 503.
      const isBehind = code === 'projection_behind' && namesPosition(requested)
      if (status >= 500 && !isBehind) throw new Error(`${description} → ${text}`)
      if (tookMs > ANSWER_MAX_MS) throw new Error(`${description} took ${tookMs} ms.`)
      await checkResponse({ method: requested.method, path: requested.path, ...answer }).catch((error: Error) => {
        throw new Error(`${description}: ${error.message}`)
      })
      generate.learn(text)
      statuses[status] = (statuses[status] ?? 0) + 1
      slowestMs = Math.max(slowestMs, tookMs)
      if (status < 400) succeeded.add(requested.operation)
    }
    await inParallel(CONCURRENCY, Array.from({ length: REQUESTS }), (_, index) => sendNext(generate.next(), index))
    const operations = Object.values(document.paths).flatMap(methods => Object.values(methods))
    const missing = (): string[] => operations.map(({ operationId }) => operationId).filter(id => !succeeded.has(id))
    // Some operations need a rare state, which a random request does not always meet.
    for (let index = REQUESTS; index < REQUESTS + RARE_MAX && missing().length > 0; index++) {
      const requested = generate.next()
      if (!succeeded.has(requested.operation)) await sendNext(requested, index)
    }
    agent.destroy()
    process.stdout.write(`      ${JSON.stringify(statuses)}, the slowest in ${Math.round(slowestMs)} ms\n`)
    expect(missing(), 'operations that never succeeded').to.deep.equal([])
    expect((await clientOf(service.api).get('/readyz')).body.status).to.equal('ready')
  })
})
