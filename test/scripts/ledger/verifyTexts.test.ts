import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { progressFor } from '../../../scripts/ledger/progress.ts'
import { textsCheck } from '../../../scripts/ledger/verify/texts.ts'
import { countLost, REFERRING } from '../../../src/personalTexts/lostTexts.ts'
import type { Database } from '../../../src/ports.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { type ServiceProcess, startProcess } from '../../support/service.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

type Found = { readonly kind: string; readonly detail: string; readonly place: Readonly<Record<string, unknown>> }

/** With a service of its own: the command reads the rows of all tenants, and other tests erase and lose texts too. */
describe('npm run ledger -- verify --only texts', () => {
  let service: ServiceProcess
  const tenant = `texts-${randomUUID().slice(0, 8)}`
  let client: Client
  let database: Database
  const orders: string[] = []
  let payment = ''

  const verify = async (...args: readonly string[]) => {
    const { code, stdout } = await ledger(['verify', '--only', 'texts', '--json', ...args], service.dataDir)
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { counts: object; findings: Found[] }[] }
    const found = checks[0]?.findings.filter(({ detail }) => detail.includes(tenant)) ?? []
    return { code, ok, found, counts: checks[0]?.counts as { references: number } }
  }
  const lose = (where: string) => database.sql(`delete from personal_texts where tenant_id = $1 and ${where}`, [tenant])
  const personalData = (...args: readonly string[]) =>
    ledger(['personal-data', ...args, '--tenant', tenant], service.dataDir)

  before(async () => {
    service = await startProcess(await emptyFolder())
    client = clientOf(service.api, await service.token({ tenant }))
    database = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1 })
    for (const customer_reference of ['Jane', 'Jane', 'Joan'])
      orders.push((await client.post('/orders', { ...anOrder(), customer_reference })).body.id)
    const { invoiceId } = await approvedInvoice(client, 100)
    payment = (await pay(client, aPayment(invoiceId, { amount: 100, reference: 'INV 7' }))).body.id
    await eventually(async () => (await client.get('/payments')).body.items.length === 1)
    await eventually(async () => (await client.get('/orders')).body.items.length >= 4)
  })
  after(async () => {
    await database.close()
    await service.end('SIGTERM')
    await tidyUp()
  })

  it('finds nothing as long as each text is there, or was erased', async () => {
    expect((await personalData('erase', '--customer-reference', 'Joan')).code).to.equal(0)
    const { code, ok, found, counts } = await verify()
    expect([code, ok, found]).to.deep.equal([0, true, []])
    expect(counts.references).to.be.at.least(4)
  })

  it('counts the references whose text was lost, names a row, its tenant and the drill', async () => {
    await lose("text in ('Jane', 'INV 7')")
    const { code, ok, found } = await verify()
    expect([code, ok]).to.deep.equal([1, false])
    expect(found.map(({ kind, place }) => [kind, place['table'], place['member'], place['lost']])).to.deep.equal([
      ['text_lost', 'orders_v1', 'customer_reference', 2],
      ['text_lost', 'payments_v1', 'reference', 1],
    ])
    expect(found[0]?.place['example']).to.equal(orders.slice(0, 2).toSorted()[0])
    expect(found[1]?.detail).to.match(
      new RegExp(
        `, 1 have no text, and it was not erased: in the tenants ${tenant}, such as that of ${payment}\\. .* drill 5 of`,
      ),
    )
  })

  it('begins after a row where it was interrupted', async () => {
    const rest = await verify('--after', payment)
    expect([rest.found, rest.counts]).to.deep.equal([[], { references: 0 }])
    const { found } = await verify('--after', orders.slice(0, 2).toSorted()[0] ?? '')
    expect(found.map(({ place }) => [place['table'], place['lost']])).to.deep.equal([
      ['orders_v1', 1],
      ['payments_v1', 1],
    ])
    expect((await ledger(['verify', '--after', payment], service.dataDir)).stderr).to.equal(
      '--after goes with --only texts.\n',
    )
  })

  it('keeps the place at which it was interrupted', async () => {
    const texts = { after: '' }
    const signal = AbortSignal.abort(new Error('interrupted'))
    const startProgress = progressFor({ json: true })
    const unused = undefined as never
    const sources = { store: unused, config: unused, world: unused, database, texts, signal, startProgress }
    expect((await rejectionOf(textsCheck.run(sources))).message).to.equal('interrupted')
    expect(texts.after).to.match(/^ord_/)
    await rejectionOf(textsCheck.run(sources))
    expect(texts.after, 'after the last order').to.match(/^pay_/)
  })

  it('reads rows in pages, each once', async () => {
    const [ofOrders] = REFERRING
    const whole = await countLost(database.sql, ofOrders, { after: '', limit: 100_000 })
    let [pages, references, lost] = [0, 0, 0]
    for (let after: string | null = ''; after !== null; ) {
      const page = await countLost(database.sql, ofOrders, { after, limit: 2 })
      if (page.last !== null) pages += 1
      references += page.references
      lost += page.lost
      after = page.last
    }
    const [rows] = await database.sql<{ count: bigint }>('select count(*) as count from orders_v1')
    expect(pages).to.equal(Math.ceil(Number(rows?.count) / 2))
    expect([references, lost]).to.deep.equal([whole.references, whole.lost])
  })

  it('finds nothing once the lost texts are recorded as erased, each with an audit record', async () => {
    const { code, stdout } = await personalData('erase', '--lost', '--json')
    expect(code).to.equal(0)
    const { erased } = JSON.parse(stdout) as { erased: readonly string[] }
    expect(erased.map(token => token.slice(0, 4)).toSorted()).to.deep.equal(['prf_', 'prs_'])
    for (const token of erased)
      await eventually(async () => {
        const { body } = await client.get(`/audit-records?resource=${token}`)
        return body.items.some(({ operation }: { operation: string }) => operation === 'erase_personal_data')
      })
    expect((await verify()).found).to.deep.equal([])
    expect(JSON.parse((await personalData('erase', '--lost', '--json')).stdout).erased).to.deep.equal([])
    expect((await personalData('erase', '--lost', '--token', erased[0] ?? '')).stderr).to.match(
      /^Name one text, or all/,
    )
  })
})
