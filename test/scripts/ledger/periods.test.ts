import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { createLedger, type Ledger } from '../../../src/commands/commandHandler.ts'
import { closePeriod } from '../../../src/commands/periods.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import type { InvoiceId } from '../../../streams/ids.ts'
import { anOrder, type Client, clientOf, inParallel, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { ledger, tidyUp } from './fixtures.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const dayBefore = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)
/** Long over, so that midnight during the test does not matter. */
const CLOSED_DAY = dayBefore(3)
const INSIDE = `${CLOSED_DAY}T12:00:00.000Z`

describe('npm run ledger -- periods', () => {
  let service: TestService
  let store: EventStore & { close: () => Promise<void> }
  let database: Database
  let log: Ledger

  before(async () => {
    service = await sharedService()
    store = openEventStore({ connectionString: service.addresses.event_store ?? '' })
    database = openDatabase({ connectionString: service.addresses.postgres ?? '', applicationName: 'periods-test' })
    log = createLedger(store, realWorld())
  })
  after(async () => {
    await Promise.all([store.close(), database.close()])
    await tidyUp()
  })

  const clientFor = async (tenant: string): Promise<Client> => clientOf(service.api, await service.token({ tenant }))
  const drafts = (client: Client, count: number): Promise<InvoiceId[]> =>
    inParallel(4, Array.from({ length: count }), async () => {
      const order = await client.post('/orders', anOrder(100))
      return (await client.post('/invoices', { order_id: order.body.id })).body.id as InvoiceId
    })
  const contextAt = (tenant: string, at: string) => {
    const who = { tenant, subject: 'boss', client: 'shop', authority: 'invoice:approve' }
    return { ...who, correlationId: newKey(), commandId: newKey(), at }
  }
  const close = (tenant: string, through: string) =>
    ledger(['periods', 'close', '--tenant', tenant, '--through', through, '--reason', 'audited', '--json'])
  it('are closed once, listed and audited', async () => {
    const tenant = 'closed-periods'
    const client = await clientFor(tenant)
    await drafts(client, 1)
    const closed = await close(tenant, CLOSED_DAY)
    expect(closed.code, closed.stderr).to.equal(0)
    expect(JSON.parse(closed.stdout)).to.include({ tenant, closed_through: CLOSED_DAY })
    const repeated = await close(tenant, CLOSED_DAY)
    expect(JSON.parse(repeated.stdout)).to.deep.equal(JSON.parse(closed.stdout))
    const { items } = JSON.parse((await ledger(['periods', 'list', '--tenant', tenant, '--json'])).stdout)
    expect(items).to.have.length(1)
    expect(items[0]).to.include({ through: CLOSED_DAY, reason: 'audited' })
    expect((await ledger(['periods', 'list', '--tenant', tenant])).stdout).to.include(CLOSED_DAY)
    const { subject: closed_by, ...closing } = items[0]
    expect((await client.get('/periods')).body.items).to.deep.equal([{ ...closing, closed_by }])
    const audited = await eventually(async () => {
      const { body } = await client.get('/audit-records?operation=close_period')
      return body.items.length > 0 && body.items
    })
    expect(audited).to.have.length(1)
    expect(audited[0]).to.include({ decision: 'granted', resource: CLOSED_DAY, authority: 'operator' })
  })

  it('are shown by the API to their tenant alone, the last one first, page by page', async () => {
    const tenant = 'paged-periods'
    const client = await clientFor(tenant)
    expect((await client.get('/periods')).body).to.deep.include({ items: [] })
    await drafts(client, 1)
    const dependencies = { ledger: log, sql: database.sql, bookedUpTo: () => store.head() }
    const days = [dayBefore(6), dayBefore(5), dayBefore(4)]
    for (const through of days)
      await closePeriod(dependencies, { through, reason: 'audited' }, contextAt(tenant, new Date().toISOString()))
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const { items, page } = (await client.get(`/periods?limit=1${cursor}`)).body
      seen.push(...items.map(({ through }: { through: string }) => through))
      if (!page.has_more) break
      cursor = `&cursor=${page.next_cursor}`
    }
    expect(seen).to.deep.equal(days.toReversed())
    expect((await (await clientFor('strange-periods')).get('/periods')).body.items).to.deep.equal([])
  })

  it('are not closed before the day is over, by the clock of the command and by that of Postgres', async () => {
    const { code, stderr } = await close('open-periods', dayBefore(0))
    expect([code, stderr]).to.deep.equal([2, `${dayBefore(0)} is not over yet (in UTC).\n`])
    const ahead = { through: dayBefore(-5), reason: 'the clock of this machine is ahead' }
    const dependencies = { ledger: log, sql: database.sql, bookedUpTo: () => store.head() }
    expect(await closePeriod(dependencies, ahead, contextAt('open-periods', INSIDE))).to.deep.equal({
      kind: 'not_over',
    })
  })

  it('are not closed while an event is parked that the books may lack', async () => {
    const tenant = 'parked-periods'
    await drafts(await clientFor(tenant), 1)
    const event = `insert into parked_facts
        (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts, first_failed_at)
      values ('journal_entries_v1', 0, 'pay_parked', 'payment-parked', 0, 'parked', 'PaymentSucceeded', $1, 'test', 1, now())`
    await database.sql(event, [tenant])
    try {
      const { code, stderr } = await close(tenant, CLOSED_DAY)
      expect(code).to.equal(2)
      expect(stderr).to.include('may lack 1 dead letters: replay or discard them first')
    } finally {
      await database.sql('delete from parked_facts where tenant_id = $1', [tenant])
    }
    expect((await close(tenant, CLOSED_DAY)).code).to.equal(0)
  })

  it('are not closed for a tenant without events, which may be a typing error', async () => {
    const { code, stderr } = await close('acmee-periods', CLOSED_DAY)
    expect([code, stderr]).to.deep.equal([
      2,
      'There are no events of a tenant acmee-periods. A closing cannot be undone, so only a tenant with books has one.\n',
    ])
    const listed = await ledger(['periods', 'list', '--tenant', 'acmee-periods', '--json'])
    expect(JSON.parse(listed.stdout).items).to.deep.equal([])
  })

  it('are closed for a tenant whose events are not in the list of orders yet', async () => {
    const tenant = 'unlisted-periods'
    await drafts(await clientFor(tenant), 1)
    const behind: typeof database.sql = async (text, values) =>
      text.includes('is_listed') ? [] : database.sql(text, values)
    const dependencies = { ledger: log, sql: behind, bookedUpTo: () => store.head() }
    const requested = { through: CLOSED_DAY, reason: 'audited' }
    expect(await closePeriod(dependencies, requested, contextAt(tenant, new Date().toISOString()))).to.include({
      kind: 'closed',
    })
  })

  it('are not closed from rebuilt books that lack entries of the last closing', async () => {
    const tenant = 'anew-periods'
    await drafts(await clientFor(tenant), 1)
    const before = await store.head()
    await drafts(await clientFor('other-periods'), 1)
    const closing = async (through: string, bookedUpTo: () => Promise<bigint>) => {
      const context = contextAt(tenant, new Date().toISOString())
      return closePeriod({ ledger: log, sql: database.sql, bookedUpTo }, { through, reason: 'audited' }, context)
    }
    expect(await closing(dayBefore(4), () => store.head())).to.include({ kind: 'closed' })
    expect(await closing(CLOSED_DAY, async () => before)).to.deep.equal({ kind: 'made_anew' })
  })

  for (const [name, args, complaint] of [
    ['no day', ['--tenant', 'acme', '--through', '2026-02-30'], '"2026-02-30" is not a day: YYYY-MM-DD.'],
    ['no tenant', ['--tenant', 'Acme!', '--through', '2026-01-31'], 'A tenant is 1 to 63 characters of a-z'],
  ] as const)
    it(`refuse ${name}`, async () => {
      const { code, stderr } = await ledger(['periods', 'close', ...args, '--reason', 'x'])
      expect(code).to.equal(2)
      expect(stderr).to.include(complaint)
    })
})
