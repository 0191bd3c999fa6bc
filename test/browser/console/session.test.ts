import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { addUser } from '../../../src/embedded/issuer/users.ts'
import { chromiumPath, openChromium, reportMissingChromium } from '../../support/chromium.ts'
import { eventually, takesEffect } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { signedIn, visit, type Visitor, watch } from './consolePage.ts'

/** Signing in and out of the console, and what happens when a token expires or the network is lost. */

const REVOKED_WITHIN_MS = 5_000

if (chromiumPath === undefined) reportMissingChromium('signing in and out of the console')
else
  describe('browser: the session of the console', () => {
    let service: TestService
    let browser: Browser
    let visitor: Visitor
    before(async () => {
      ;[service, browser] = await Promise.all([sharedService(), openChromium()])
    })
    beforeEach(async () => {
      visitor = await visit(browser, service, { as: 'bob' })
    })
    afterEach(() => visitor.context.close())
    after(() => browser.close())

    const tokenOf = async (): Promise<string> => {
      const { page } = visitor
      const request = page.waitForRequest(asked => 'authorization' in asked.headers())
      await page.getByRole('link', { name: 'Case', exact: true }).click()
      return (await request).headers()['authorization'] ?? ''
    }

    it('begins with one click on a development user, and continues without one when the page is reloaded', async () => {
      const { page, complaints } = visitor
      await page.goto(`${service.api}/console/case/payments?state=failed`)
      await page.getByRole('button', { name: 'bob of acme' }).click()
      await signedIn(page)
      expect(page.url()).to.equal(`${service.api}/console/case/payments?state=failed`)
      const header = (await page.getByRole('banner').textContent()) ?? ''
      expect(header.replaceAll(/\s+/g, ' ')).to.include('bob of acme').and.to.include('test')
      await page.reload()
      await signedIn(page)
      const kept = await page.evaluate<string>(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
      )
      expect(kept).not.to.match(/eyJ|verifier|code/)
      expect(complaints).to.deep.equal([])
    })

    it('ends in every tab, at the API and at the issuer, and asks who signs in next', async () => {
      const { page, context } = visitor
      await visitor.open('/console')
      const authorization = await tokenOf()
      const other = await context.newPage()
      await other.goto(`${service.api}/console`)
      await signedIn(other)
      await page.getByRole('button', { name: 'Sign out' }).click()
      await other.getByRole('heading', { name: 'You are signed out' }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: 'You are signed out' }).waitFor()
      const status = async (): Promise<number> =>
        (await fetch(`${service.api}/invoices`, { headers: { authorization } })).status
      await takesEffect(async () => (await status()) === 401, REVOKED_WITHIN_MS)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'alice of acme' }).click()
      await signedIn(page)
      expect(await page.getByRole('banner').textContent()).to.include('alice')
    })

    it('is renewed before its token expires, without a reload', async () => {
      const { page, complaints } = visitor
      await page.clock.install()
      await visitor.open('/console')
      const renewed = page.waitForResponse(
        response => response.url() === `${service.addresses.issuer}/token` && response.request().method() === 'POST',
      )
      await page.clock.fastForward('14:30')
      expect((await renewed).status()).to.equal(200)
      expect((await renewed).request().postData()).to.include('grant_type=refresh_token')
      await page.getByRole('link', { name: 'Money' }).click()
      await page.getByRole('heading', { name: 'Trial balance' }).waitFor()
      expect(complaints).to.deep.equal([])
    })

    it('expires visibly where it cannot be renewed: the page stays, and goes on after signing in beside it', async () => {
      const { page } = visitor
      await visitor.open('/console/do/create_order')
      await page.getByLabel('description').fill('half a form')
      await page.route(`${service.addresses.issuer}/token`, route =>
        route.fulfill({ status: 400, contentType: 'application/json', body: '{"error":"invalid_grant"}' }),
      )
      await page.route(`${service.api}/orders`, route => route.fulfill({ status: 401, body: '{}' }))
      await page.getByLabel('currency').selectOption('USD')
      await page.getByRole('button', { name: 'Send' }).click()
      const notice = page.getByRole('alert').filter({ hasText: 'This page stays as it is' })
      await notice.waitFor()
      await page.unrouteAll()
      const popup = page.waitForEvent('popup')
      await notice.getByRole('button', { name: 'Sign in again' }).click()
      await eventually(async () => (await popup).isClosed())
      await notice.waitFor({ state: 'detached' })
      expect(await page.getByLabel('description').inputValue()).to.equal('half a form')
    })

    it('says that there is no network, and tries again on demand', async () => {
      const { page, context } = visitor
      await visitor.open('/console/case/invoices')
      await page.getByText('No invoices yet').or(page.getByRole('table')).waitFor()
      await context.setOffline(true)
      await page.getByRole('button', { name: 'Reload' }).click()
      const problem = page.getByRole('alert')
      await problem.waitFor()
      expect(await problem.textContent())
        .to.include('The service cannot be reached')
        .and.to.include('no_answer')
      await context.setOffline(false)
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.getByText('No invoices yet').or(page.getByRole('table')).waitFor()
    })

    it('moves from 127.0.0.1 to the name that the issuer has', async () => {
      await visitor.open('/console/money')
      const { port } = new URL(service.api)
      await visitor.page.goto(`http://127.0.0.1:${port}/console/money`)
      await visitor.page.waitForURL(`${service.api}/console/money`)
      await signedIn(visitor.page)
    })

    it('asks a user with a password for it and for consent, once', async () => {
      const username = `pat-${randomUUID().slice(0, 8)}`
      const password = await addUser(service.dataDir, { username, tenant: 'acme', scope: 'orders:read' })
      const context = await browser.newContext()
      const page = await context.newPage()
      const complaints: string[] = []
      watch(page, complaints)
      await page.goto(`${service.api}/console`)
      // The issuer reads its file of users once a second.
      await eventually(async () => {
        await page.getByLabel('User name').fill(username)
        await page.getByLabel('Password').fill(password)
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
        await page
          .getByRole('button', { name: /Allow|Sign in/ })
          .first()
          .waitFor()
        return (await page.getByRole('button', { name: 'Allow' }).count()) > 0
      })
      await page.getByRole('button', { name: 'Allow' }).click()
      await signedIn(page)
      await page.reload()
      await signedIn(page)
      const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()
      expect(pages).to.deep.equal(['Overview', 'Case', 'Do'])
      await context.close()
    })
  })
