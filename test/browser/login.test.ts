import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { newPkce } from '../identity/browser.ts'
import { type Delegation, openDelegation } from '../identity/oauthFlows.ts'
import { eventually, takesEffect } from '../support/eventually.ts'
import { chromiumPath, openChromium, reportMissingChromium } from '../support/chromium.ts'

/** A user, a browser and an application on the real service, without stubs. */

/** From this time on every instance refuses a revoked token. */
const REVOKED_WITHIN_MS = 5_000

/** The application's server, which shows the parameters of its callback. */
const startApplication = async (): Promise<{ server: Server; callback: string }> => {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end(`Back at the application: ${request.url}`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { server, callback: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback` }
}

/** WCAG's relative luminance of `rgb(r, g, b)`. */
const luminance = (colour: string): number => {
  const channels = (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(text => Number(text) / 255)
  const [red = 0, green = 0, blue = 0] = channels.map(c => (c <= 0.040_45 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrast = (one: string, other: string): number => {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

type Coloured = { readonly text: string; readonly colour: string; readonly ground: string }

/** Runs in the browser: the colour of each text and of its background. A string, since Node has no DOM types. */
const COLOURS = `(() => {
  const groundOf = element => {
    const colour = element ? getComputedStyle(element).backgroundColor : 'rgb(255, 255, 255)'
    return element && colour.endsWith(', 0)') ? groundOf(element.parentElement) : colour
  }
  const own = element => [...element.childNodes].map(node => (node.nodeType === 3 ? node.textContent : '')).join('').trim()
  return [...document.querySelectorAll('body *')]
    .filter(element => own(element) !== '')
    .map(element => ({ text: own(element), colour: getComputedStyle(element).color, ground: groundOf(element) }))
})()`

if (chromiumPath === undefined) reportMissingChromium('login, consent and error pages in a real browser')
else
  describe('browser: a user authorizes an application', () => {
    let d: Delegation
    let browser: Browser
    let application: Awaited<ReturnType<typeof startApplication>>
    let client: string

    before(async () => {
      ;[d, browser, application] = await Promise.all([openDelegation(), openChromium(), startApplication()])
      const { callback } = application
      client = await d.client({ client_id: 'shop', public: true, name: 'Corner Shop Books', redirect_uris: [callback] })
      await d.settle()
    })

    after(async () => {
      await browser.close()
      application.server.closeAllConnections()
      application.server.close()
    })

    const requested = (changes: Record<string, string> = {}): string =>
      d.authorizeUrl({ client_id: client, redirect_uri: application.callback, ...changes })

    /** A page whose console errors fail the test. */
    const open = async (options: BrowserContextOptions = {}) => {
      const context: BrowserContext = await browser.newContext(options)
      const page = await context.newPage()
      const complaints: string[] = []
      page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', error => complaints.push(error.message))
      return { context, page, complaints }
    }

    /** Uses the keyboard only. */
    const logIn = async (page: Page): Promise<void> => {
      await page.keyboard.type(d.users.user)
      await page.keyboard.press('Tab')
      await page.keyboard.type(d.password)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Allow Corner Shop Books to act for you?' }).waitFor()
    }

    it('logs in, consents, and the application calls the API; a second use of its code revokes the tokens', async () => {
      const { context, page, complaints } = await open()
      const { verifier, challenge } = newPkce()
      await page.goto(requested({ code_challenge: challenge, state: 'from the shop' }))
      expect(await page.title()).to.equal('Sign in · Payment ledger')
      await logIn(page)
      expect(await page.getByRole('listitem').allTextContents()).to.deep.equal([
        'See your orders',
        'Create, change and cancel orders',
        'See your invoices',
      ])
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.waitForURL(`${application.callback}?**`)
      expect(complaints).to.deep.equal([])

      const back = new URL(page.url()).searchParams
      expect([back.get('state'), back.get('iss')]).to.deep.equal(['from the shop', d.issuer])
      const redemption = {
        grant_type: 'authorization_code',
        client_id: client,
        code: back.get('code') ?? '',
        code_verifier: verifier,
        redirect_uri: application.callback,
      }
      const { status, body } = await d.token(redemption)
      expect(status).to.equal(200)
      const access = String(body['access_token'])
      expect(await d.api(access)).to.equal('ok')

      expect((await d.token(redemption)).body['error']).to.equal('invalid_grant')
      await takesEffect(async () => (await d.api(access)) === 'token_invalid', REVOKED_WITHIN_MS)
      expect((await d.refresh(String(body['refresh_token']), { client_id: client })).status).to.equal(400)
      await context.close()
    })

    it('denies, or cancels without an input, and the application gets the error', async () => {
      const { context, page, complaints } = await open()
      await page.goto(requested())
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.waitForURL(/error=access_denied/)
      await page.goto(requested())
      await page.getByLabel('User name').fill(d.users.user)
      await page.getByLabel('Password').fill(d.password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Deny' }).click()
      await page.waitForURL(/error=access_denied/)
      expect(complaints).to.deep.equal([])
      await context.close()
    })

    it('reads errors with the focus on the field to correct', async () => {
      const { context, page } = await open()
      await page.goto(requested())
      await page.getByLabel('User name').fill(d.users.user)
      await page.getByLabel('Password').fill('not the password')
      await page.keyboard.press('Enter')
      expect(await page.getByRole('alert').textContent()).to.equal(
        'That did not work. Check the user name and the password.',
      )
      expect(await page.evaluate('document.activeElement.id')).to.equal('password')
      await page.goto(requested({ redirect_uri: 'https://evil.test/' }))
      expect(await page.getByRole('heading').textContent()).to.equal('This did not work')
      await context.close()
    })

    for (const colorScheme of ['light', 'dark'] as const)
      it(`has sufficient contrast, on a phone too, in the ${colorScheme}`, async () => {
        const { context, page } = await open({ colorScheme, viewport: { width: 360, height: 640 } })
        const check = async (): Promise<void> => {
          for (const { text, colour, ground } of await page.evaluate<Coloured[]>(COLOURS))
            expect(contrast(colour, ground), `${text}: ${colour} on ${ground}`).to.be.at.least(4.5)
          expect(await page.evaluate('document.documentElement.scrollWidth')).to.be.at.most(360)
          const unlabelled =
            '[...document.querySelectorAll("input:not([type=hidden])")].filter(i => i.labels.length !== 1)'
          expect(await page.evaluate(`${unlabelled}.length`)).to.equal(0)
        }
        await page.goto(requested())
        await check()
        await page.getByLabel('Password').fill('not the password')
        await page.getByLabel('User name').fill(d.users.user)
        await page.keyboard.press('Enter')
        await page.getByRole('alert').waitFor()
        await check()
        await page.keyboard.type(d.password)
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Allow' }).waitFor()
        await check()
        await page.goto(requested({ client_id: 'nobody' }))
        await check()
        await context.close()
      })

    it('sees nothing of the login in a frame of another page', async () => {
      const { context, page } = await open()
      await page.goto(application.callback)
      await page.setContent(`<iframe src="${requested().replaceAll('&', '&amp;')}"></iframe>`)
      const framed = await eventually(() => page.frames().find(frame => frame.url().startsWith('chrome-error:')))
      expect(await framed.getByLabel('Password').count()).to.equal(0)
      await context.close()
    })
  })
