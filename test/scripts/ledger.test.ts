import { rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { FOLLOWERS } from '../../scripts/ledger/doctor/feeds.ts'
import { aligned } from '../../scripts/ledger/table.ts'
import { type Addresses, readAddresses } from '../../src/addresses.ts'
import { openDatabase } from '../../src/adapters/postgres.ts'
import { derivedId } from '../../src/commands/identifiers.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { fulfilment } from '../../src/processes/fulfilment.ts'
import { settlement } from '../../src/processes/settlement.ts'
import { type Client, approvedInvoice, clientOf, newKey } from '../support/client.ts'
import { kafkaForTests, kafkaKind } from '../support/kafka.ts'
import { sharedService, temporaryDirectory, type TestService } from '../support/service.ts'
import { type Ended, run } from './cli.ts'

const TENANT = 'operators'

let service: TestService
let client: Client
const folders: string[] = []
const servers: Server[] = []

const ledger = (args: readonly string[], dataDir = service.dataDir, env = {}): Promise<Ended> =>
  run('ledger.ts', args, { LEDGER_DATA_DIR: dataDir, ...env })

const emptyFolder = async (): Promise<string> => {
  const folder = await temporaryDirectory()
  folders.push(folder)
  return folder
}

/** A data directory of a service that is elsewhere than the shared one in these parts. */
const folderWith = async (changes: Partial<Addresses>): Promise<string> => {
  const folder = await emptyFolder()
  await writeFile(join(folder, 'addresses.json'), JSON.stringify({ ...service.addresses, ...changes }))
  return folder
}

const serving = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A port where nobody listens. */
const closedPort = async (): Promise<number> => {
  const api = await serving(() => undefined)
  await new Promise(resolve => servers.pop()?.close(resolve))
  return Number(new URL(api).port)
}

type Diagnosis = {
  readonly ok: boolean
  readonly addresses: Record<string, string | null>
  readonly checks: readonly { check: string; status: string; detail: string; way_out?: string }[]
  readonly feeds: readonly { name: string; position: string | null; behind: number }[]
}

const diagnosisOf = ({ stdout }: Ended): Diagnosis => JSON.parse(stdout) as Diagnosis

const findingsIn = (ended: Ended): Record<string, string> =>
  Object.fromEntries(
    diagnosisOf(ended)
      .checks.filter(({ status }) => status === 'finding')
      .map(({ check, detail, way_out }) => {
        expect(way_out, check).to.match(/^[A-Z].*\.$/)
        return [check, detail]
      }),
  )

describe('npm run ledger', function () {
  this.timeout(60_000)

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })
  after(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
  })

  it('explains each command, and that it takes --json', async () => {
    for (const command of [['doctor'], ['streams', 'show'], ['token']]) {
      const { code, stdout } = await ledger([...command, '--help'])
      expect(code).to.equal(0)
      expect(stdout)
        .to.include(`Usage: ledger ${command.join(' ')}`)
        .and.to.include('--json')
    }
    expect((await ledger(['--help'])).stdout).to.match(/doctor[^]*streams[^]*token/)
  })

  it('refuses a command that there is not, and names the one that may be meant', async () => {
    const { code, stdout, stderr } = await ledger(['docter'])
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.include('doctor')
  })

  it('says in a sentence which setting is wrong', async () => {
    const { code, stderr } = await ledger(['doctor'], service.dataDir, { PORT: 'x' })
    expect(code).to.equal(1)
    expect(stderr).to.equal('PORT is not usable: a port number.\n')
  })

  it('says in a sentence that the address file cannot be read', async () => {
    const folder = await emptyFolder()
    await writeFile(join(folder, 'addresses.json'), '{"api":')
    const { code, stderr } = await ledger(['doctor'], folder)
    expect(code).to.equal(1)
    expect(stderr).to.equal(`The addresses in ${folder} cannot be read: restart the service.\n`)
  })

  describe('token', () => {
    const args = ['token', '--tenant', TENANT, '--subject', 'me', '--scope', 'orders:read']

    it('prints a token that the API takes, alone', async () => {
      const { stdout, stderr } = await ledger(args)
      expect(stderr).to.equal('')
      expect(stdout).to.match(/^\S+\n$/)
      expect((await clientOf(service.api, stdout.trim()).get('/orders')).status).to.equal(200)
    })

    it('prints it as JSON, with how long it is good for', async () => {
      const workload = JSON.parse((await ledger([...args, '--json'])).stdout)
      expect(workload).to.include({ token_type: 'Bearer', expires_in: 300, scope: 'orders:read' })
      expect((await clientOf(service.api, workload.access_token).get('/orders')).status).to.equal(200)
      expect(JSON.parse((await ledger([...args, '--user', '--json'])).stdout).expires_in).to.equal(900)
    })

    it('refuses a scope that there is not', async () => {
      const { code, stdout, stderr } = await ledger([...args.slice(0, -1), 'orders:own'])
      expect({ code, stdout, stderr }).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: 'There is no scope "orders:own".\n',
      })
    })
  })

  describe('streams show', () => {
    let invoiceId: string
    let orderId: string
    let payment: { id: string; correlation: string }

    before(async () => {
      ;({ invoiceId, orderId } = await approvedInvoice(client, 700))
      const body = { invoice_id: invoiceId, amount: 700, currency: 'USD', reference: 'audited' }
      const paid = await client.post('/payments', body, { 'idempotency-key': newKey() })
      payment = { id: paid.body.id, correlation: paid.headers.get('x-correlation-id') ?? '' }
    })

    const events = async (id: string) => JSON.parse((await ledger(['streams', 'show', id, '--json'])).stdout)

    it('prints the events of an invoice with who, when, by what right and the correlation id', async () => {
      const shown = await events(invoiceId)
      expect(shown).to.include({ stream: `invoice-${invoiceId}`, id: invoiceId })
      const types = shown.events.map(({ type, revision }: { type: string; revision: string }) => `${revision} ${type}`)
      expect(types).to.deep.equal(['0 InvoiceRaised', '1 InvoiceApproved', '2 PaymentApplied', '3 InvoicePaid'])
      expect(shown.events[2]).to.deep.include({
        tenant: TENANT,
        subject: 'tester',
        client: 'tester',
        authority: 'payments:write',
        correlation_id: payment.correlation,
        schema_version: 1,
        data: { payment_id: payment.id, amount: 700 },
      })
      const { at, stored_at } = shown.events[2]
      expect(Math.abs(Date.parse(stored_at) - Date.parse(at))).to.be.below(30_000)
    })

    it('knows the streams of orders, payments and references by their ids', async () => {
      const typesOf = async (id: string) => (await events(id)).events.map(({ type }: { type: string }) => type)
      expect((await typesOf(orderId)).slice(0, 2)).to.deep.equal(['OrderCreated', 'OrderInvoiced'])
      expect(await typesOf(payment.id)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
      expect(await typesOf(derivedId('ref', TENANT, 'audited'))).to.deep.equal(['ReferenceTaken'])
    })

    it('prints them for people', async () => {
      const { code, stdout } = await ledger(['streams', 'show', payment.id])
      expect(code).to.equal(0)
      expect(stdout).to.match(new RegExp(`^payment-${payment.id}, 2 events, tenant ${TENANT}\n`))
      expect(stdout).to.match(/^0 {2}\d{4}-\S+Z {2}PaymentInitiated\n {3}who +tester, by payments:write\n/m)
      expect(stdout).to.include(`correlation  ${payment.correlation}, caused by `)
      expect(stdout).to.include('     "amount": 700,\n')
    })

    for (const [what, id, sentence] of [
      [
        'an id that nothing has',
        'inv_00000000000000000000000000',
        /^There is no stream invoice-inv_0{26} in the store/,
      ],
      ['an id of no kind', 'inv_short', /^"inv_short" is no id of a stream: ord_…, inv_…, pay_…, ref_…/],
      ['an operation, which is no stream', 'op_00000000000000000000000000', /is no id of a stream/],
    ] as const)
      it(`refuses ${what}`, async () => {
        const { code, stdout, stderr } = await ledger(['streams', 'show', id])
        expect([code, stdout]).to.deep.equal([1, ''])
        expect(stderr).to.match(sentence)
      })

    it('says how to start the service when none runs', async () => {
      const folder = await emptyFolder()
      const { code, stderr } = await ledger(['streams', 'show', invoiceId], folder)
      expect(code).to.equal(1)
      expect(stderr)
        .to.match(/^No service runs on .*npm start/)
        .and.to.include(folder)
    })

    it('reads the store that EVENTSTORE_URL names', async () => {
      const env = { EVENTSTORE_URL: service.addresses.event_store }
      const { code, stdout } = await ledger(['streams', 'show', payment.id], await emptyFolder(), env)
      expect(code).to.equal(0)
      expect(stdout).to.include('PaymentSucceeded')
    })
  })

  describe('doctor', () => {
    it('finds nothing wrong with a service that runs, and tells every address', async () => {
      const ended = await ledger(['doctor', '--json'])
      expect(findingsIn(ended)).to.deep.equal({})
      expect(ended.code).to.equal(0)
      const { ok, addresses, feeds } = diagnosisOf(ended)
      const { pids: _, ...known } = (await readAddresses(service.dataDir))!
      expect(addresses).to.deep.equal(known)
      expect(ok).to.equal(true)
      const names = ['orders_v1', 'invoices_v1', 'payments_v1', 'facts_v1', 'settlement', 'fulfilment']
      expect(feeds.map(({ name }) => name)).to.include.members(names)
      for (const { name, behind } of feeds) expect(behind, name).to.equal(0)
    })

    it('prints a table for people, without the password of Postgres', async () => {
      const { code, stdout } = await ledger(['doctor'])
      expect(code).to.equal(0)
      for (const part of [
        'node',
        'data directory',
        'disk',
        'API',
        'event store',
        'Postgres',
        'issuer',
        'feed facts_v1',
      ])
        expect(stdout).to.match(new RegExp(`^ok +${part} `, 'm'))
      expect(stdout).to.include(`held by the process ${process.pid}`).and.to.include('Nothing was found wrong.')
      expect(stdout).not.to.include(new URL(service.addresses.postgres).password)
    })

    it('says that nothing runs, and how to start it', async () => {
      const folder = await emptyFolder()
      const ended = await ledger(['doctor', '--json'], folder)
      expect(ended.code).to.equal(1)
      expect(diagnosisOf(ended).addresses).to.deep.equal({
        api: null,
        event_store: null,
        postgres: null,
        kafka: null,
        issuer: null,
      })
      expect(findingsIn(ended)).to.deep.equal({ service: 'It does not run.' })
      expect((await ledger(['doctor'], folder)).stdout).to.match(/^service: No service runs on .*npm start/m)
    })

    it('names each part that does not answer', async () => {
      const port = await closedPort()
      const folder = await folderWith({
        api: `http://127.0.0.1:${port}`,
        event_store: `esdb://127.0.0.1:${port}?tls=false`,
        postgres: `postgres://ledger:secret@127.0.0.1:${port}/ledger`,
        kafka: `127.0.0.1:${port}`,
        issuer: `http://127.0.0.1:${port}/oauth`,
      })
      const ended = await ledger(['doctor', '--json'], folder)
      expect(ended.code).to.equal(1)
      const findings = findingsIn(ended)
      expect(Object.keys(findings)).to.deep.equal(['API', 'event store', 'Postgres', 'Kafka', 'issuer'])
      for (const [part, detail] of Object.entries(findings)) expect(detail, part).to.include('ECONNREFUSED')
      const { stdout } = await ledger(['doctor'], folder)
      expect(stdout)
        .to.match(/^FINDING +event store /m)
        .and.not.to.include('secret')
    })

    it('names the check that keeps the API from being ready, and another program on its port', async () => {
      const checks = { postgres: 'ok', invoices_v1: 'The event X is unknown to this build.' }
      const ill = await serving((request, response) => {
        const live = request.url === '/livez'
        response.writeHead(live ? 200 : 503).end(JSON.stringify({ status: live ? 'ok' : 'not_ready', checks }))
      })
      const notReady = findingsIn(await ledger(['doctor', '--json'], await folderWith({ api: ill })))
      expect(notReady).to.deep.equal({ API: `${ill} is not ready: invoices_v1: ${checks.invoices_v1}.` })
      const other = await serving((_, response) => void response.end('hello'))
      const notOurs = findingsIn(await ledger(['doctor', '--json'], await folderWith({ api: other })))
      expect(notOurs).to.deep.equal({ API: `What answers at ${other} is not this service.` })
    })

    it('names the feeds that are behind, and those that have never run', async () => {
      await approvedInvoice(client)
      const owner = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
      await owner.sql('create database doctor_test')
      const postgres = new URL(service.addresses.postgres)
      postgres.pathname = '/doctor_test'
      const database = openDatabase({ connectionString: postgres.href, poolMax: 1 })
      try {
        await database.sql('create table checkpoints (name text primary key, position bigint not null)')
        const far = 10n ** 15n
        for (const [name, position] of [
          ['orders_v1', far],
          ['invoices_v1', -1n],
          ['facts_v1', far],
          ['fulfilment', far],
          ['settlement', far],
        ] as const)
          await database.sql('insert into checkpoints values ($1, $2)', [name, position])
        const ended = await ledger(['doctor', '--json'], await folderWith({ postgres: postgres.href }))
        expect(ended.code).to.equal(1)
        const findings = findingsIn(ended)
        expect(findings['feed invoices_v1']).to.match(/^\d+ events (or more )?behind, at position -1/)
        expect(findings['feed payments_v1']).to.equal('It has never run here.')
        expect(findings).not.to.include.any.keys('feed orders_v1', 'feed facts_v1', 'feed fulfilment')
        const behind = diagnosisOf(ended).feeds.find(({ name }) => name === 'invoices_v1')?.behind
        expect(behind).to.be.at.least(2)
      } finally {
        await database.close()
        await owner.sql('drop database doctor_test with (force)')
        await owner.close()
      }
    })

    it('looks at the parts that the environment names when no service runs here', async () => {
      const port = new URL(service.api).port
      const { event_store, postgres } = service.addresses
      const env = { PORT: port, EVENTSTORE_URL: event_store, DATABASE_URL: postgres }
      const ended = await ledger(['doctor', '--json'], await emptyFolder(), env)
      expect(diagnosisOf(ended).addresses).to.deep.include({ api: service.api, event_store, postgres })
      expect(findingsIn(ended)).to.deep.equal({ issuer: 'It is not known where it is.' })
      expect(ended.code).to.equal(1)
    })

    if (kafkaKind !== 'none')
      it('asks Kafka for its brokers', async () => {
        const kafka = (await kafkaForTests())!.brokers.join(',')
        const { checks } = diagnosisOf(await ledger(['doctor', '--json'], await folderWith({ kafka })))
        const check = checks.find(({ check }) => check === 'Kafka')
        expect(check).to.include({ status: 'ok' })
        expect(check?.detail).to.match(/, brokers: [1-9]/)
      })

    it('counts for each process and for the publisher in the categories that it follows', () => {
      const { ledger, database, bus } = {} as never
      expect(FOLLOWERS).to.deep.equal({
        settlement: settlement(ledger).categories,
        fulfilment: fulfilment(ledger).categories,
        publisher: publisherOf(database, bus).categories,
      })
    })
  })

  it('aligns columns', () => {
    const rows = [
      ['', 'planned', 'found'],
      ['paid', '1', '12345678'],
    ]
    expect(aligned(rows)).to.deep.equal(['      planned  found', 'paid  1        12345678'])
    expect(aligned(rows, 'right')).to.deep.equal(['      planned     found', 'paid        1  12345678'])
  })
})
