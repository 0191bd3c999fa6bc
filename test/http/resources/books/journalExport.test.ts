import { expect } from 'chai'
import { aPayment, approvedInvoice, type Client, clientOf, newKey, pay } from '../../../support/client.ts'
import { askFor, fetched } from '../../../support/exportSteps.ts'
import { inFormat, type Read } from '../../../support/exportFileReaders.ts'
import { sharedService, type TestService } from '../../../support/service.ts'

const TENANT = 'journal-exports'
const CLEARING = 'cash-in-clearing.USD'
const CUSTOMER = 'CUST 7'

type Entry = {
  id: string
  position: string
  reversed_by: string | null
  postings: { account: string; direction: string; amount: number; currency: string }[]
}

describe('exports of the journal', () => {
  let service: TestService
  let client: Client
  /** The entries as GET has them, oldest first. */
  let entries: Entry[]
  let names: ReadonlyMap<string, string>

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    const { invoiceId } = await approvedInvoice(client, 1_000, { customer_reference: CUSTOMER })
    const payment = await pay(client, aPayment(invoiceId, { amount: 300 }))
    await client.post(
      `/payments/${payment.body.id}:refund`,
      { amount: 50, reason: 'late' },
      { 'idempotency-key': newKey() },
    )
    const settled = await pay(client, aPayment(invoiceId, { amount: 200, settlement: 'deferred' }))
    await client.post(`/payments/${settled.body.id}:settle`, {})
    const failed = await pay(client, aPayment(invoiceId, { amount: 100, settlement: 'deferred' }))
    const last = await client.post(`/payments/${failed.body.id}:fail`, {})
    const headers = { 'if-min-position': last.headers.get('ledger-position') ?? '', prefer: 'wait=10' }
    const { body } = await client.get('/journal-entries?limit=100', headers)
    entries = body.items.toReversed()
    const { items } = (await client.get('/accounts', headers)).body
    names = new Map(items.map(({ code, name }: { code: string; name: string }) => [code, name]))
  })

  const exported = async (
    format: 'csv' | 'jsonl' | 'parquet',
    filters: Record<string, string> = {},
  ): Promise<Read[]> => {
    const id = await askFor(client, { resource: 'journal_entries', format, filters })
    const { rows, manifest } = await fetched(service, client, { id, tenant: TENANT })
    expect(manifest).to.deep.include({ resource: 'journal_entries', filters })
    return rows
  }

  /** One row for each posting, with the balance by summing up what came before. */
  const rowsOf = (all: readonly Entry[]): Read[] => {
    const balances = new Map<string, number>()
    return all.flatMap(({ id: entry_id, reversed_by: _, postings, ...entry }) =>
      postings.map(({ account, direction, amount, currency }, index) => {
        const side = /^(?:revenue|refunds-payable)/.test(account) ? 'credit' : 'debit'
        const balance = (balances.get(account) ?? 0) + (direction === side ? amount : -amount)
        balances.set(account, balance)
        const account_name = names.get(account) ?? ''
        const customer_reference = account.startsWith('receivables.') ? CUSTOMER : null
        const posting = { line: index + 1, account, direction, amount, currency, exponent: 2, balance }
        return { entry_id, ...entry, ...posting, account_name, customer_reference }
      }),
    )
  }

  for (const format of ['csv', 'jsonl', 'parquet'] as const)
    it(`as ${format} have one row for each posting, oldest first, with the balance after it`, async () => {
      const rows = rowsOf(entries)
      expect(rows).to.have.length(14)
      const expected = rows.map(row => inFormat(format, row)).map(row => forParquet(format, row))
      expect(await exported(format)).to.deep.equal(expected)
    })

  /** The names of these two columns do not tell their type. */
  const forParquet = (format: string, row: Read): Read =>
    format === 'parquet' ? { ...row, at: new Date(String(row['at'])), line: Number(row['line']) } : row

  it('of one account are its statement', async () => {
    const rows = await exported('jsonl', { account: CLEARING })
    expect(rows.map(({ direction, amount, balance }) => [direction, amount, balance])).to.deep.equal([
      ['debit', 200, 200],
      ['credit', 200, 0],
      ['debit', 100, 100],
      ['credit', 100, 0],
    ])
    const { body } = await client.get(`/accounts/${CLEARING}`)
    expect(rows.at(-1)?.['balance']).to.equal(body.balances.posted + body.balances.pending)
  })

  it('have the rows between two times, and of an order, an invoice or a payment', async () => {
    const all = rowsOf(entries)
    const { at } = entries[2] as Entry & { at: string }
    const earlier = await exported('jsonl', { created_before: at })
    const later = await exported('jsonl', { created_after: at })
    expect(later.map(row => row['at'])).to.include(at)
    expect([...earlier, ...later]).to.deep.equal(all)
    for (const name of ['order_id', 'invoice_id', 'payment_id']) {
      const value = String((entries[1] as Read | undefined)?.[name])
      expect(await exported('jsonl', { [name]: value })).to.deep.equal(all.filter(row => row[name] === value))
    }
  })

  it('have nothing of another tenant, and are empty for an account without entries', async () => {
    const other = clientOf(service.api, await service.token({ tenant: `${TENANT}-other` }))
    const id = await askFor(other, { resource: 'journal_entries', format: 'csv' })
    expect((await fetched(service, other, { id, tenant: `${TENANT}-other` })).rows).to.deep.equal([])
    expect(await exported('csv', { account: 'cash.EUR' })).to.deep.equal([])
  })

  it('are refused with an unknown filter', async () => {
    const refused = await client.post('/exports', {
      resource: 'journal_entries',
      format: 'csv',
      filters: { account: 'cash', state: 'paid' },
    })
    const pointers = refused.body.errors.map(({ pointer }: { pointer: string }) => pointer)
    expect([refused.status, pointers]).to.deep.equal([400, ['/filters/account', '/filters/state']])
  })
})
