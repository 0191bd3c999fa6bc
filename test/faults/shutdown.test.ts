import { readFile, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { DRAIN_MS } from '../../src/settings/timeBudgets.ts'
import {
  anOrder,
  aPayment,
  approvedInvoice,
  type Client,
  clientOf,
  inParallel,
  newKey,
  pay,
} from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { sentIn } from '../support/factSchemaCheck.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

const CLIENTS = 8
const PAYMENTS_BEFORE_END = 2 * CLIENTS

const isAlive = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // A zombie has ended; its parent has not read its status yet.
  return stat !== undefined && !/^\d+ \(.*\) Z/.test(stat)
}

const pidsOf = async ({ addresses, dataDir }: ServiceProcess): Promise<number[]> => {
  const file = await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')
  return [...Object.values(addresses.pids), Number(file.split('\n')[0])]
}

/** The outcome of one request: a complete response, or none. */
type Outcome = { readonly status: number; readonly location: string | null; readonly text: string } | 'no answer'

describe('the service as a process', () => {
  let dataDir: string
  const started: ServiceProcess[] = []
  before(async () => {
    dataDir = await temporaryDirectory()
  })
  afterEach(async () => {
    for (const service of started.splice(0)) await service.end('SIGKILL')
  })
  after(() => removeFolder(dataDir))

  const start = async (env: Record<string, string> = {}): Promise<ServiceProcess> => {
    const service = await startProcess(dataDir, env)
    started.push(service)
    return service
  }

  it('shuts down gracefully at SIGTERM under load: no partial response, no lost payment, no process left', async () => {
    const service = await start()
    const pids = await pidsOf(service)
    expect(pids).to.have.lengthOf(4)
    for (const pid of pids) expect(await isAlive(pid), `${pid}`).to.equal(true)
    const token = await service.token({ tenant: 'shutdown' })
    const client = clientOf(service.api, token)
    const invoices = await inParallel(4, Array.from({ length: CLIENTS }), () => approvedInvoice(client, 1_000_000))
    const unexpected: string[] = []
    const acknowledged: { location: string; text: string }[] = []
    let stopped = false
    const load = invoices.map(async ({ invoiceId }) => {
      while (!stopped) {
        const outcome = await payOnce(service.api, token, invoiceId)
        if (outcome === 'no answer') break
        const { status, location, text } = outcome
        if (status === 201) acknowledged.push({ location: location ?? '', text })
        else if (status !== 503 || !/"(shutting_down|overloaded)"/.test(text)) unexpected.push(`${status} ${text}`)
      }
    })
    const eventStream = await fetch(`${service.api}/events`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
    })
    const listener = eventStream.text()
    await eventually(() => acknowledged.length > PAYMENTS_BEFORE_END)
    // The code tells that it ended within its time limit.
    const code = await service.end('SIGTERM')
    stopped = true
    await Promise.all(load)
    expect(code, service.output()).to.equal(0)
    expect(service.output()).to.match(/\nstopping\nstopped\n$/)
    expect(unexpected).to.deep.equal([])
    const streamed = await listener
    expect(streamed, 'the event stream ends after a complete event').to.match(
      /\n\n: ended: shutting_down\nretry: [12]\d{3}\n\n$/,
    )
    for (const block of streamed.trimEnd().split('\n\n')) sentIn(block)
    for (const pid of pids) expect(await isAlive(pid), `${pid} is left behind`).to.equal(false)

    const next = await start()
    const reader = clientOf(next.api, await next.token({ tenant: 'shutdown' }))
    await inParallel(CLIENTS, acknowledged, async ({ location, text }) => {
      const read = await reader.get(location)
      expect([read.status, read.text]).to.deep.equal([200, text])
    })
  })

  const payOnce = async (api: string, token: string, invoiceId: string): Promise<Outcome> => {
    const response = await fetch(`${api}/payments`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': newKey(),
      },
      body: JSON.stringify(aPayment(invoiceId, { amount: 1 })),
    }).catch(() => undefined)
    if (response === undefined) return 'no answer'
    // After the status a body that ends early would be a partial response.
    const text = await response.text().catch((error: Error) => `broke off: ${error.message}`)
    return {
      status: text.startsWith('broke off') ? 0 : response.status,
      location: response.headers.get('location'),
      text,
    }
  }

  const SHUTDOWN_DELAY = '5s'

  /** Ends the service. During SHUTDOWN_DELAY it is not ready, and serves. */
  const endDraining = async (service: ServiceProcess, client: Client): Promise<void> => {
    const probe = async (): Promise<number> => (await fetch(`${service.api}/readyz?for=traffic`)).status
    expect(await probe()).to.equal(200)
    const ending = service.end('SIGTERM')
    await eventually(async () => (await probe()) === 503)
    const { status, headers } = await client.get('/orders')
    expect([status, headers.get('connection')]).to.deep.equal([200, 'close'])
    expect(await ending, service.output()).to.equal(0)
  }

  it('is not ready and serves during SHUTDOWN_DELAY, with several processes', async () => {
    const service = await start({ SHUTDOWN_DELAY, LEDGER_PROCESSES: '2' })
    await endDraining(service, clientOf(service.api, await service.token({ tenant: 'drained' })))
  })

  it('is not delayed by clients that keep their connections open', async () => {
    const service = await start()
    const port = Number(new URL(service.api).port)
    const idle = connect(port, '127.0.0.1')
    const halfAsked = connect(port, '127.0.0.1').on('error', () => undefined)
    halfAsked.write('POST /orders HTTP/1.1\r\nHost: x\r\nContent-Le')
    await Promise.all([idle, halfAsked].map(socket => once(socket, 'connect')))
    // The server accepts connections in their order, so that it has accepted both when it answers on a third one.
    expect((await fetch(`${service.api}/livez`)).status).to.equal(200)
    const sentAtMs = performance.now()
    expect(await service.end('SIGTERM')).to.equal(0)
    expect(performance.now() - sentAtMs).to.be.below(DRAIN_MS)
    for (const socket of [idle, halfAsked]) socket.destroy()
  })

  it('has all data again when it is started on the same directory', async () => {
    const first = await start({ SHUTDOWN_DELAY })
    const client = clientOf(first.api, await first.token({ tenant: 'restart' }))
    const { invoiceId, orderId } = await approvedInvoice(client, 300)
    const key = newKey()
    const paid = await pay(client, aPayment(invoiceId), key)
    const page = await eventually(async () => {
      const events = (await client.get('/events')).body
      return events.items.some(({ type }: { type: string }) => type === 'payment.succeeded') && events
    })
    await endDraining(first, client)
    const second = await start()
    const again = clientOf(second.api, await second.token({ tenant: 'restart' }))
    for (const path of [`/invoices/${invoiceId}`, `/orders/${orderId}`, paid.headers.get('location') ?? ''])
      expect((await again.get(path)).status, path).to.equal(200)
    expect((await pay(again, aPayment(invoiceId), key)).text).to.equal(paid.text)
    expect((await again.get('/events')).body.items).to.deep.equal(page.items)
    // The earlier cursor and the read models continue.
    expect((await again.get(`/events?cursor=${page.page.next_cursor}`)).body.items).to.deep.equal([])
    const order = await again.post('/orders', anOrder())
    await eventually(async () => (await again.get('/orders')).body.items.length === 2)
    const next = await eventually(async () => {
      const { items } = (await again.get(`/events?cursor=${page.page.next_cursor}`)).body
      return items.length > 0 && items
    })
    expect(next.map(({ subject }: { subject: string }) => subject)).to.deep.equal([order.body.id])
  })

  it('shuts down gracefully also when the reader of its output has gone', async () => {
    const service = await start()
    service.closeOutput()
    expect(await service.end('SIGTERM')).to.equal(0)
  })

  it('names a variable that resembles a setting', async () => {
    const service = await start({ LEDGER_PROCESES: '2' })
    expect(service.output()).to.include('LEDGER_PROCESES is not a setting of the service and has no effect.\n')
  })

  describe('that cannot start prints the reason as a sentence', () => {
    const refusal = async (directory: string, env: Record<string, string> = {}): Promise<string> => {
      const failed = await startProcess(directory, env).then(
        service => service.end('SIGKILL').then(() => undefined),
        (error: Error) => error.message,
      )
      expect(failed, 'it started').to.be.a('string')
      const [first, ...lines] = (failed ?? '').trim().split('\n')
      expect(first).to.include('ended (1) before it was ready')
      expect(lines, failed).to.have.lengthOf(1)
      expect(lines[0]).to.match(/^[A-Z].*\.$/)
      expect(lines[0]).not.to.match(/Error:|\bat /)
      return lines[0] ?? ''
    }

    it('when its port is in use, and leaves no process running', async () => {
      const taken = createServer().listen(0, '127.0.0.1')
      await new Promise(resolve => taken.once('listening', resolve))
      const { port } = taken.address() as AddressInfo
      const sentence = await refusal(dataDir, { PORT: String(port) })
      expect(sentence).to.include(`${port}`).and.to.include('in use').and.to.include('PORT')
      taken.close()
      expect(await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8').catch(() => 'ended')).to.equal(
        'ended',
      )
    })

    it('when another one runs on its directory, which continues', async () => {
      const first = await start()
      const sentence = await refusal(dataDir)
      expect(sentence).to.include(dataDir).and.to.include(`${first.pid}`)
      expect((await clientOf(first.api).get('/readyz')).status).to.equal(200)
    })

    it('when its directory is a file', async () => {
      const file = join(dataDir, 'file')
      await writeFile(file, 'x')
      expect(await refusal(file)).to.include(file)
    })

    it('when a setting is invalid', async () => {
      expect(await refusal(dataDir, { PORT: 'http' })).to.include('PORT')
      expect(await refusal(dataDir, { NODE_ENV: 'production' })).to.include('DATABASE_URL')
    })
  })
})
