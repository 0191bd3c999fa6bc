import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import type { Browser, Page } from 'playwright-core'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { addUser } from '../../../src/embedded/issuer/users.ts'
import { SCOPES } from '../../../src/identity/principal.ts'
import { chromiumPath, openChromium, reportMissingChromium } from '../../support/chromium.ts'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { signedIn, visit, type Visitor, watch } from './consolePage.ts'
import { type DemoService, demoService } from './demoData.ts'

/** What people do at the console, from a first order to the proof of its events. */

if (chromiumPath === undefined) reportMissingChromium('commands, facts, exports, proofs and rebuilds at the console')
else
  describe('browser: work at the console', () => {
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
    const answer = () => page.getByRole('region', { name: 'Answer' })
    const send = async (status: number): Promise<Record<string, string>> => {
      await page.getByRole('button', { name: 'Send' }).click()
      await answer()
        .getByRole('status')
        .filter({ hasText: String(status) })
        .waitFor()
      const text = await answer().locator('pre').innerText()
      return JSON.parse(text.slice(text.indexOf('{'))) as Record<string, string>
    }

    it('raises, approves, pays and refunds by hand, each once per key', async () => {
      await go('/do/create_order')
      await page.getByLabel('currency').selectOption('USD')
      await page.getByRole('button', { name: 'Add line' }).click()
      await page.getByLabel('sku').fill('tea')
      await page.getByLabel('quantity').fill('2')
      await page.getByLabel('unit amount').fill('450')
      const order = await send(201)
      expect(await send(201)).to.deep.equal(order)
      expect(await answer().innerText()).to.include('idempotent-replayed: true')
      await page.getByRole('link', { name: 'See the case' }).click()
      await page.getByRole('link', { name: 'Raise an invoice' }).click()
      const invoice = await send(201)
      await page.getByRole('link', { name: 'See the case' }).click()
      await page.getByRole('link', { name: 'Approve' }).click()
      await page.getByText('This one was created by dana; you are dana.').waitFor()
      await eventually(async () => (await page.getByLabel('If-Match').inputValue()) !== '')
      expect((await send(200))['state']).to.equal('approved')
      await go(`/case/${invoice['id']}`)
      await page.getByRole('link', { name: 'Pay', exact: true }).click()
      expect(await page.getByLabel('amount', { exact: true }).inputValue()).to.equal('900')
      const payment = await send(201)
      expect([payment['state'], payment['invoice_id']]).to.deep.equal(['succeeded', invoice['id']])
      await eventually(
        async () => (await service.client.get(`/payments?invoice_id=${invoice['id']}`)).body.items.length > 0,
      )
      await page.getByRole('link', { name: 'See the case' }).click()
      await page.getByRole('link', { name: 'Refund' }).click()
      await page.getByRole('combobox', { name: 'kind' }).selectOption({ label: 'remaining' })
      await page.getByLabel('reason').fill('Broken cup')
      expect((await send(200))['state']).to.equal('refunded')
    })

    it('shows a refusal with its code, its remedy and its correlation id', async () => {
      await go('/do/create_payment')
      await page.getByLabel('invoice id').fill('inv_00000000000000000000000000')
      await page.getByLabel('amount', { exact: true }).fill('1')
      await page.getByLabel('currency').selectOption('USD')
      await page.getByRole('button', { name: 'Send' }).click()
      const problem = await page.getByRole('alert').innerText()
      expect(problem)
        .to.include('resource_not_found')
        .and.include('Correct the request')
        .and.match(/Correlation id [\w.-]{8,}/)
      expect(visitor.complaints.splice(0)).to.have.lengthOf(1)
    })

    it('follows the facts as they appear, and holds them back while it is paused', async () => {
      await go('/facts?type=order.created')
      const facts = page.locator('.timeline li')
      await facts.first().waitFor()
      await page.getByRole('status').filter({ hasText: 'live' }).waitFor()
      const create = async (): Promise<string> =>
        (
          await service.client.post('/orders', {
            currency: 'USD',
            lines: [{ sku: 'cup', quantity: 1, unit_amount: 5 }],
          })
        ).body.id
      await facts.filter({ hasText: await create() }).waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      const later = await create()
      await page.getByRole('status').filter({ hasText: '1 waiting' }).waitFor()
      expect(await facts.filter({ hasText: later }).count()).to.equal(0)
      await page.getByRole('button', { name: 'Continue' }).click()
      expect(await facts.first().innerText()).to.include(later)
    })

    it('ends the stream of facts when another page is shown', async () => {
      const streams = new Set<unknown>()
      page.on('request', request => request.headers()['accept'] === 'text/event-stream' && streams.add(request))
      page.on('requestfailed', request => streams.delete(request))
      await go('/facts')
      await eventually(() => streams.size === 1)
      for (const name of ['Money', 'Facts', 'Operations']) await page.getByRole('link', { name, exact: true }).click()
      await page.getByRole('heading', { name: 'Exports' }).waitFor()
      await eventually(() => streams.size === 0)
    })

    it('replays a subscription: says before where the log ends and how many facts will be sent', async () => {
      const created = await service.client.post('/subscriptions', { types: ['invoice.paid'], start: 'now' })
      await go(`/facts/${created.body.id}`)
      const form = page.locator('replay-form')
      const { body: facts } = await service.client.get('/events?type=invoice.paid&limit=100')
      await form
        .getByRole('status')
        .filter({ hasText: `${facts.items.length} facts will be sent again` })
        .waitFor()
      const end = /The log ends at position (\d+)/.exec(await form.innerText())?.[1]
      const { body: later } = await service.client.get('/events?type=invoice.paid&limit=1')
      expect(Number(end)).to.be.above(0).and.at.most(Number(later.page.as_of_position))
      await form.getByRole('button', { name: 'Replay' }).click()
      await form.getByText('Accepted as op_').waitFor()
      await page.getByText('No dead letters yet. Every fact was delivered.').waitFor()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('button', { name: 'Resume' }).waitFor()
      expect((await service.client.get(`/subscriptions/${created.body.id}`)).body.state).to.equal('paused')
    })

    it('asks for a dead letter to be discarded, with a reason, and shows that it was', async () => {
      const { body } = await service.client.post('/subscriptions', { types: ['order.created'], start: 'now' })
      const database = openDatabase({ connectionString: service.addresses.postgres, applicationName: 'console-test' })
      await database.sql(
        `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
          first_failed_at) values ($1, 7, 'ord_1', 'order-ord_1', 0, $2, 'order.created', $3, 'x', 10, now())`,
        [body.id, randomUUID(), 'chinook'],
      )
      await go(`/facts/${body.id}`)
      await page.getByRole('link', { name: 'Discard' }).click()
      await page.getByLabel('reason').fill('Nobody needs it.')
      expect(await send(202)).to.deep.equal({ subject: 'ord_1', requested: 'discard', facts: 1 })
      await go(`/facts/${body.id}`)
      await page.getByText('discard asked for').waitFor()
      await database.sql('delete from parked_facts where delivery = $1', [body.id])
      await database.close()
    })

    it('orders an export by its form and downloads the file', async () => {
      await go('/do/create_export')
      await page.getByRole('combobox', { name: 'kind' }).selectOption({ label: 'payments' })
      await page.getByLabel('format').selectOption('csv')
      const operation = await send(202)
      await eventually(
        async () => (await service.client.get(`/operations/${operation['id']}`)).body.state === 'succeeded',
      )
      await eventually(async () => (await service.client.get('/operations')).body.items[0]?.state === 'succeeded')
      await go('/operations')
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Download' }).first().click()
      const file = await readFile(await (await download).path(), 'utf8')
      const content = await service.client.get(`/exports/${operation['id']}/content`)
      expect(file).to.equal(content.text)
      expect((await download).suggestedFilename()).to.equal(`${operation['id']}.csv`)
    })

    it('verifies an event in the browser, also against a head that was kept, and notices a false one', async () => {
      const { body } = await service.client.get(`/invoices/${service.invoiceIds[0]}/history`)
      const approved = body.items.find(({ type }: { type: string }) => type === 'InvoiceApproved').event_id
      const head = await eventually(async () => {
        const proof = await service.client.get(`/audit/proof/${approved}`)
        return proof.status === 200 && proof.body.head
      })
      await go(`/audit/proof?event_id=${approved}`)
      const result = page.getByRole('region', { name: 'Result' })
      await result.getByRole('status').filter({ hasText: 'unchanged' }).waitFor()
      expect(await result.getByRole('listitem').count()).to.equal(3)
      await page.getByLabel(/The head that you kept/).fill(JSON.stringify(head))
      await page.getByRole('button', { name: 'Verify' }).click()
      await result.getByText('The head is the one that you kept').waitFor()
      await result.getByRole('status').filter({ hasText: 'unchanged' }).waitFor()
      await page.getByLabel(/The head that you kept/).fill(JSON.stringify({ ...head, root: '0'.repeat(64) }))
      await page.getByRole('button', { name: 'Verify' }).click()
      await result.getByRole('status').filter({ hasText: 'not proven' }).waitFor()
      // An answer whose event was changed on its way.
      await page.route('**/audit/proof/*', async route => {
        const response = await route.fetch()
        const proof = await response.json()
        await route.fulfill({ response, json: { ...proof, event: proof.event.replace('demo-approver', 'demo-clerk') } })
      })
      await go(`/audit/proof?event_id=${approved}`)
      await result.getByText('Failed: The hash of the event is that of the leaf').waitFor()
    })

    /** Signs in as a new user of the tenant, with a password. */
    const signInAs = async (tenant: string, scope: string): Promise<Page> => {
      const username = `u-${randomUUID().slice(0, 8)}`
      const password = await addUser(service.dataDir, { username, tenant, scope })
      const context = await browser.newContext()
      const opened = await context.newPage()
      watch(opened, visitor.complaints)
      await opened.goto(`${service.api}/console`)
      // The issuer reads its file of users once a second; a refused attempt is an error of the console.
      await eventually(async () => {
        await opened.getByLabel('User name').fill(username)
        await opened.getByLabel('Password').fill(password)
        await opened.getByRole('button', { name: 'Sign in', exact: true }).click()
        await opened
          .getByRole('button', { name: /Allow|Sign in/ })
          .first()
          .waitFor()
        return (await opened.getByRole('button', { name: 'Allow' }).count()) > 0
      })
      visitor.complaints.splice(0)
      await opened.getByRole('button', { name: 'Allow' }).click()
      await signedIn(opened)
      return opened
    }

    it('lets operators verify a read model, and shows what they did', async () => {
      const operator = await signInAs('variants', SCOPES.join(' '))
      operator.on('dialog', dialog => void dialog.accept())
      const disk = operator.getByRole('link', { name: 'Disks nearly full' })
      expect(await disk.innerText()).to.match(/^0\n.*\n[\d.]+ GiB are free where the data is$/)
      const expiring = operator.getByRole('link', { name: 'Certificates that expire' })
      expect(await expiring.innerText()).to.match(/^0\n/)
      await operator.getByRole('link', { name: 'Operations' }).click()
      const row = operator.getByRole('row').filter({ hasText: /^orders/ })
      await row.getByRole('button', { name: 'Verify' }).click()
      await row.getByText(/rows? equal at/).waitFor()
      const happened = operator.getByRole('region', { name: 'What happened' })
      await happened.getByRole('row').filter({ hasText: 'started (' }).first().waitFor()
      await happened.getByRole('row').filter({ hasText: 'took over: projector' }).first().waitFor()
      await operator.getByRole('region', { name: 'Leases' }).getByText('projector').waitFor()
      await operator.getByRole('region', { name: 'Versions in use' }).getByText('console').first().waitFor()
      await operator.getByRole('link', { name: 'verify projection' }).click()
      await operator.locator('td[data-label="Operation"]', { hasText: 'verify projection' }).first().waitFor()
      await operator.context().close()
    })

    it('shows a token without a scope neither the data nor the button', async () => {
      const clerk = await signInAs('chinook', 'invoices:read payments:read')
      const names = await clerk.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()
      expect(names).to.deep.equal(['Overview', 'Case', 'Money', 'Do'])
      const requested: string[] = []
      clerk.on('request', request => requested.push(new URL(request.url()).pathname))
      for (const path of ['/audit', '/operations', '/facts', '/money', '/do', `/case/${service.invoiceIds[0]}`]) {
        await clerk.goto(`${service.api}/console${path}`)
        await signedIn(clerk)
        await clerk.locator('main > *').first().waitFor()
      }
      await clerk.getByRole('img', { name: /The invoice is/ }).waitFor()
      expect(await clerk.getByRole('link', { name: /^(Approve|Pay|Refund|Void|Raise.*|Verify.*)$/ }).count()).to.equal(
        0,
      )
      expect(
        requested.filter(path => /^\/(audit|projections|events|orders|trial|accounts|operations)/.test(path)),
      ).to.deep.equal([])
      await clerk.goto(`${service.api}/console/do/create_payment`)
      await clerk.getByText('Your token does not permit create_payment.').waitFor()
      await clerk.context().close()
    })

    it('shows an approver of another tenant nothing of this one', async () => {
      const token = await service.token({ tenant: 'globex', subject: 'carol', user: true })
      expect((await clientOf(service.api, token).get(`/invoices/${service.invoiceIds[0]}`)).status).to.equal(404)
      const stranger = await visit(browser, service, { as: 'carol' })
      await stranger.open(`/console/case/${service.invoiceIds[0]}`)
      await stranger.page.getByRole('alert').filter({ hasText: 'resource_not_found' }).waitFor()
      await stranger.context.close()
    })
  })
