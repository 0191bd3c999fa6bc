import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { addUser } from '../../src/embedded/issuer/users.ts'
import { NEWEST_VERSION, OLDEST_VERSION } from '../../src/http/versions/index.ts'
import { chromiumPath, openChromium, reportMissingChromium } from '../support/chromium.ts'
import { clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { sharedService, type TestService } from '../support/service.ts'

/** The page /docs in a real browser, with a login at the service's own issuer. */

const TIMEOUT_MS = 60_000

if (chromiumPath === undefined) reportMissingChromium('the page /docs and its login')
else
  describe('browser: a reader of /docs', () => {
    let service: TestService
    let browser: Browser
    let context: BrowserContext
    const username = `reader-${randomUUID().slice(0, 8)}`
    let password: string
    before(async () => {
      ;[service, browser] = await Promise.all([sharedService(), openChromium()])
      password = await addUser(service.dataDir, { username, tenant: 'acme', scope: 'orders:read' })
    })
    beforeEach(async () => {
      context = await browser.newContext()
      context.setDefaultTimeout(TIMEOUT_MS)
    })
    afterEach(() => context.close())
    after(() => browser.close())

    /** The page, what its console complains about, and the addresses that it requests. */
    const open = async (path: string) => {
      const page = await context.newPage()
      const complaints: string[] = []
      const requested: string[] = []
      page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', error => complaints.push(error.message))
      page.on('request', request => requested.push(request.url()))
      await page.goto(`${service.api}${path}`)
      await page.locator('.opblock-tag').first().waitFor()
      return { page, complaints, requested }
    }

    const chooseOperation = async (page: Page, operationId: string) => {
      const operation = page.locator(`[id$="-${operationId}"]`)
      const tag = page.locator('.opblock-tag-section').filter({ has: page.locator('[data-tag="Orders"]') })
      if ((await operation.count()) === 0) await tag.locator('.opblock-tag').click()
      await operation.locator('.opblock-summary-control').click()
      return operation
    }

    it('logs in by PKCE at the embedded issuer, and calls the API', async () => {
      const { page, complaints, requested } = await open('/docs')
      await page.locator('.auth-wrapper .authorize').first().click()
      const flow = page.locator('.auth-container').filter({ hasText: 'authorizationCode' }).first()
      expect(await flow.locator('#client_id_authorizationCode').inputValue()).to.equal('docs-acme')
      const popup = page.waitForEvent('popup')
      await flow.locator('button.authorize').click()
      const login = await popup
      expect(new URL(login.url()).pathname).to.match(/^\/oauth\//)
      // The issuer reads its file of users once a second.
      await eventually(async () => {
        await login.getByLabel('User name').fill(username)
        await login.getByLabel('Password').fill(password)
        await login.getByRole('button', { name: 'Sign in' }).click()
        await login.getByRole('button', { name: /Allow|Sign in/ }).waitFor()
        return (await login.getByRole('button', { name: 'Allow' }).count()) > 0
      })
      const closed = login.waitForEvent('close')
      await login.getByRole('button', { name: 'Allow' }).click()
      await closed
      await flow.locator('button', { hasText: 'Logout' }).waitFor()
      await page.locator('.btn-done').first().click()

      const operation = await chooseOperation(page, 'list_orders')
      await operation.getByRole('button', { name: 'Try it out' }).click()
      const answered = page.waitForResponse(response => new URL(response.url()).pathname === '/orders')
      await operation.getByRole('button', { name: 'Execute' }).click()
      const response = await answered
      expect(response.status()).to.equal(200)
      expect(await response.headerValue('api-version')).to.equal(OLDEST_VERSION)
      expect(complaints).to.deep.equal([])
      expect(requested.filter(url => !url.startsWith(service.api) && !url.startsWith('data:'))).to.deep.equal([])
    })

    it('chooses a version, whose document and requests the page then uses', async () => {
      const { page, complaints } = await open('/docs')
      expect(await page.locator('.info .version').first().textContent()).to.include(OLDEST_VERSION)
      await page.getByRole('link', { name: NEWEST_VERSION, exact: true }).click()
      await page.locator('.info .version', { hasText: NEWEST_VERSION }).waitFor()
      await page.getByRole('link', { name: 'Changes' }).click()
      await page.getByRole('heading', { name: `API version ${NEWEST_VERSION}` }).waitFor()
      expect(complaints).to.deep.equal([])
    })

    it('gets no token when the response is of a login that it did not begin', async () => {
      const { page } = await open('/docs')
      await page.evaluate(`window.swaggerUIRedirectOauth2 = {
        state: 'asked', auth: { name: 'oauth' }, redirectUrl: '',
        callback: () => { window.outcome = 'accepted' },
        errCb: ({ message }) => { window.outcome = message },
      }`)
      const popup = page.waitForEvent('popup')
      await page.evaluate(`void window.open('/docs/oauth2-redirect.html?code=stolen&state=other')`)
      await popup
      const outcome = await eventually(() => page.evaluate('window.outcome'))
      expect(outcome).to.equal('The state of the response is not that of the request.')
    })
  })

describe('the page /docs', () => {
  it('permits nothing but its own files, and has none of another origin', async () => {
    const client = clientOf((await sharedService()).api)
    const page = await client.get(`/docs?version=${NEWEST_VERSION}`)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).to.include("default-src 'none'").and.to.include("script-src 'self'").and.not.to.include('unsafe')
    expect(page.text).not.to.match(/https?:|<script>|style=/)
    for (const [, path = ''] of page.text.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)) {
      const { status, headers } = await client.get(path)
      expect([path, status]).to.deep.equal([path, 200])
      expect(headers.get('x-content-type-options')).to.equal('nosniff')
    }
    expect((await client.get('/docs/..%2f..%2fpackage.json')).status).to.equal(404)
    expect((await client.get('/docs?version=1999-01-01')).status).to.equal(400)
  })
})
