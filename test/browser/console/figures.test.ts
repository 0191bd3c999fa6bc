import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { chromiumPath, openChromium, reportMissingChromium } from '../../support/chromium.ts'
import { approvedInvoice, newKey, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { visit, type Visitor } from './consolePage.ts'
import { type DemoService, demoService } from './demoData.ts'

/** What the pages show is what the API says. */

type Item = Readonly<Record<string, unknown>> & {
  readonly id: string
  readonly amount: number
  readonly state: string
  readonly event_id: string
  readonly invoice_id: string
}

const usd = (amount: number): string =>
  new Intl.NumberFormat('en-GB', { style: 'currency', currency: 'USD' }).format(amount / 100)

if (chromiumPath === undefined) reportMissingChromium('the figures of the console')
else
  describe('browser: the figures of the console', () => {
    let service: DemoService
    let browser: Browser
    let visitor: Visitor
    let page: Page
    before(async () => {
      ;[service, browser] = await Promise.all([demoService(), openChromium()])
    })
    beforeEach(async () => {
      visitor = await visit(browser, service, { as: 'dana' })
      ;({ page } = visitor)
      await visitor.open('/console')
    })
    afterEach(async () => {
      expect(visitor.complaints).to.deep.equal([])
      await visitor?.context.close()
    })
    after(() => browser.close())

    const go = (path: string) => page.goto(`${service.api}/console${path}`)
    const all = async (path: string): Promise<Item[]> => {
      const items: Item[] = []
      for (let cursor = ''; ; ) {
        const { body } = await service.client.get(`${path}${path.includes('?') ? '&' : '?'}limit=100${cursor}`)
        items.push(...body.items)
        if (!body.page.has_more) return items
        cursor = `&cursor=${encodeURIComponent(body.page.next_cursor)}`
      }
    }
    const cells = (column: string): Promise<string[]> => page.locator(`td[data-label="${column}"]`).allInnerTexts()

    it('are those of the lists, page by page, with filters in the address', async () => {
      const payments = await all('/payments')
      await go('/case/payments')
      await page.getByRole('table').waitFor()
      expect(await cells('Payment')).to.deep.equal(payments.slice(0, 25).map(({ id }) => id))
      expect(await cells('Amount')).to.deep.equal(payments.slice(0, 25).map(({ amount }) => usd(amount)))
      await page.getByRole('button', { name: 'Next page' }).click()
      await eventually(async () => (await cells('Payment'))[0] === payments[25]?.id)
      await page.goBack()
      await eventually(async () => (await cells('Payment'))[0] === payments[0]?.id)
      await page.getByLabel('State').selectOption('refunded')
      const refunded = payments.filter(({ state }) => state === 'refunded').map(({ id }) => id)
      await eventually(async () => (await cells('Payment')).join() === refunded.slice(0, 25).join())
      expect(new URL(page.url()).search).to.equal('?state=refunded')
      await page.getByLabel('Reference', { exact: true }).fill('there is none')
      await page.getByLabel('Reference', { exact: true }).press('Enter')
      await page.getByText('No payments match the filters.').waitFor()
    })

    it('are in the CSV file and the command line of a list', async () => {
      await go('/case/invoices?state=partially_paid')
      await page.getByRole('table').waitFor()
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: 'CSV' }).click()
      const lines = (await readFile(await (await download).path(), 'utf8')).trimEnd().split('\r\n')
      const invoices = await all('/invoices?state=partially_paid')
      expect(lines[0]).to.match(/^Invoice,State,Total,Currency,Outstanding,/)
      expect(lines.slice(1).map(line => line.split(',')[0])).to.deep.equal(invoices.map(({ id }) => id))
      await page.getByRole('button', { name: 'Copy as curl' }).click()
      const command = await page.evaluate<string>('navigator.clipboard.readText()')
      expect(command).to.include(`${service.api}/invoices?state=partially_paid`).and.include('Bearer $TOKEN')
      expect(command).not.to.include('eyJ')
    })

    it('are those of a case, whose past is stepped through event by event', async () => {
      const refund = (await all('/payments?state=refunded'))[0]
      const order = String(refund?.['order_id'])
      await go(`/case/${refund?.id}`)
      const [orders, invoices, payments] = await Promise.all([
        all(`/orders/${order}/history`),
        ...(['invoices', 'payments'] as const).map(async kind => {
          const owned = await all(`/${kind}?order_id=${order}`)
          return (await Promise.all(owned.map(({ id }) => all(`/${kind}/${id}/history`)))).flat()
        }),
      ])
      const events = [...(orders ?? []), ...(invoices ?? []), ...(payments ?? [])]
      await page.getByRole('heading', { name: `${events.length} events` }).waitFor()
      await page.getByRole('img', { name: 'The payment is refunded.' }).waitFor()
      await page.locator('.timeline li').filter({ hasText: 'Invoice approved' }).getByRole('button').click()
      await page.getByRole('img', { name: 'The invoice is approved.' }).waitFor()
      expect(await page.getByRole('img', { name: /The payment is/ }).count()).to.equal(0)
      await page.getByRole('button', { name: 'Earlier' }).click()
      await page.getByRole('img', { name: 'The invoice is draft.' }).waitFor()
      await page.getByRole('button', { name: 'Now' }).click()
      await page.getByRole('img', { name: 'The payment is refunded.' }).waitFor()
    })

    it('are found by the references of a payment and of a customer, an event id and a correlation id', async () => {
      const [payment] = await all('/payments?state=succeeded')
      const history = await all(`/payments/${payment?.id}/history`)
      const search = async (text: unknown): Promise<void> => {
        await page.keyboard.press('/')
        await page.keyboard.type(String(text))
        await page.keyboard.press('Enter')
      }
      await search(payment?.['reference'])
      await page.waitForURL(`${service.api}/console/case/${payment?.id}`)
      await page.getByRole('heading', { name: `Case ${payment?.id}` }).waitFor()
      await eventually(async () => (await service.client.get(`/audit/proof/${history[0]?.event_id}`)).status === 200)
      await search(history[0]?.event_id)
      await page.waitForURL(`${service.api}/console/case/${payment?.id}?event=${history[0]?.event_id}`)
      const approval = (await all(`/invoices/${payment?.invoice_id}/history`)).find(
        ({ type }) => type === 'InvoiceApproved',
      )
      await search(approval?.['correlation_id'])
      await page.getByRole('heading', { name: 'Decisions on the request' }).waitFor()
      await search('customer-2')
      const account = (await all('/accounts?customer_reference=customer-2'))[0]
      await page.getByRole('link', { name: String(account?.['code']) }).click()
      await page.waitForURL(/\/console\/money\?account=receivables/)
      await page.getByText('Balance of Receivables').waitFor()
      await search('no such thing')
      await page.getByText('Nothing has this id or reference').waitFor()
      // The browser notes that a correlation id is no event.
      expect(visitor.complaints.splice(0).every(text => text.includes('404'))).to.equal(true)
    })

    it('are those of the books, now and in the past', async () => {
      await go('/money')
      const footer = page.locator('tfoot td')
      await footer.first().waitFor()
      const { body } = await service.client.get('/trial-balance')
      const total = usd(body.totals[0].debits)
      expect(await footer.allInnerTexts()).to.deep.equal([total, total])
      const payments = await all('/payments')
      const sum = payments.filter(({ state }) => state === 'succeeded').reduce((so, { amount }) => so + amount, 0)
      const count = payments.filter(({ state }) => state === 'succeeded').length
      expect((await cells('succeeded')).map(text => text.trim())).to.deep.equal([`${usd(sum)} ${count}`])
      await page.getByRole('slider').press('ArrowLeft')
      await page.getByText('The books had no entry then.').waitFor()
    })

    it('are those of deferred payments, settled by the bank and not', async () => {
      const defer = async (more: object): Promise<string> => {
        const { invoiceId } = await approvedInvoice(service.client)
        const payment = { invoice_id: invoiceId, amount: 900, currency: 'USD', settlement: 'deferred', ...more }
        return (await pay(service.client, payment, newKey())).body.id
      }
      const id = await defer({})
      await service.client.post(`/payments/${await defer({ reference: `bank ${newKey()}` })}:settle`, {})
      const deferred = await eventually(async () => {
        const items = (await all('/payments')).filter(({ settlement }) => settlement === 'deferred')
        return items.some(one => one.id === id) && items.some(({ state }) => state === 'succeeded') && items
      })
      await go('/money')
      const cellOf = (head: string) =>
        page
          .getByRole('region', { name: 'Bank reconciliation' })
          .locator(`td[data-label="${head}"]`)
          .first()
          .innerText()
      const sumOf = (items: typeof deferred): string =>
        `${usd(items.reduce((so, { amount }) => so + amount, 0))} ${items.length}`
      await page.getByRole('link', { name: id }).waitFor()
      const unmatched = deferred.filter(({ state, reference }) => state === 'pending' && reference === null)
      expect((await cellOf('no reference to match')).trim()).to.equal(sumOf(unmatched))
      const settled = deferred.filter(({ state }) => state !== 'pending' && state !== 'failed')
      expect((await cellOf('settled')).trim()).to.equal(sumOf(settled))
    })

    it('are those of the overview: red where it is not zero, and links to the list', async () => {
      const { body: order } = await service.client.post('/orders', {
        currency: 'USD',
        lines: [{ sku: 'tea', quantity: 1, unit_amount: 100 }],
      })
      await service.client.post('/invoices', { order_id: order.id })
      const drafts = await eventually(async () => {
        const items = await all('/invoices?state=draft')
        return items.length > 0 && items
      })
      await go('')
      const tile = page.getByRole('link', { name: 'Invoices to approve' })
      await tile.waitFor()
      expect(await tile.innerText()).to.match(new RegExp(`^${drafts.length}\\n`))
      expect(await page.getByRole('link', { name: 'Dead letters' }).getAttribute('class')).not.to.include('bad')
      const open = page.getByRole('link', { name: 'Months not closed' })
      const monthStart = `${new Date().toISOString().slice(0, 7)}-01T00:00:00Z`
      const { body: books } = await service.client.get(`/trial-balance?as_of=${monthStart}&limit=1`)
      expect(await open.innerText()).to.match(books.items.length > 0 ? /^1\+\n/ : /^0\n/)
      expect(await open.innerText()).to.include('No period of the books was ever closed')
      await tile.click()
      await eventually(async () => (await cells('Invoice')).join() === drafts.map(({ id }) => id).join())
    })
  })
