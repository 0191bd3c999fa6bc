import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { chromiumPath, openChromium, reportMissingChromium } from '../../support/chromium.ts'
import { accessibilityFaults, focused, visit, type Visitor } from './consolePage.ts'
import { type DemoService, demoService } from './demoData.ts'

/** Every page on the demo's data: in both colour schemes, at the width of a phone, by axe and by keyboard. */

/** Paths below /console by the heading or the region that shows that their data have arrived. */
const PAGES = {
  '': 'figure',
  '/case/orders': 'table',
  '/case/invoices': 'table',
  '/case/payments': 'table',
  '/case/<invoice>': '.timeline li',
  '/money': 'tfoot td',
  '/facts': '.timeline li',
  '/facts/subscriptions': '.empty, table',
  '/operations': '.empty, table',
  '/audit': 'table',
  '/audit/heads': 'table',
  '/audit/proof': 'form textarea',
  '/do': 'main li',
  '/do/create_order': 'main form',
  '/do/approve_invoice': 'main form',
  '/do/create_subscription': 'main form',
  '/do/create_export': 'main form',
} as const

const SCREEN = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }

if (chromiumPath === undefined) reportMissingChromium('every page of the console')
else
  describe('browser: every page of the console', () => {
    let service: DemoService
    let browser: Browser
    let visitor: Visitor
    before(async () => {
      ;[service, browser] = await Promise.all([demoService(), openChromium()])
    })
    afterEach(() => visitor.context.close())
    after(() => browser.close())

    const pathOf = (path: string): string => `/console${path.replace('<invoice>', service.invoiceIds[0] ?? '')}`

    it('has no fault that axe finds, in the light, in the dark and on a phone, which it fits', async () => {
      visitor = await visit(browser, service, { as: 'dana' })
      const { page } = visitor
      await visitor.open('/console')
      for (const [path, marker] of Object.entries(PAGES)) {
        await page.setViewportSize(SCREEN)
        await page.emulateMedia({ colorScheme: 'light' })
        await page.goto(service.api + pathOf(path))
        await page.locator(marker).first().waitFor()
        expect(await accessibilityFaults(page), path).to.deep.equal([])
        await page.emulateMedia({ colorScheme: 'dark' })
        expect(await accessibilityFaults(page, ['color-contrast']), `${path} in the dark`).to.deep.equal([])
        await page.setViewportSize(PHONE)
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).to.be.at.most(PHONE.width)
        expect(await accessibilityFaults(page), `${path} on a phone`).to.deep.equal([])
        expect(visitor.complaints, path).to.deep.equal([])
      }
    })

    it('leads with the keyboard to every page, and shows where one is', async () => {
      visitor = await visit(browser, service, { as: 'dana' })
      const { page } = visitor
      await visitor.open('/console')
      await page.locator('figure').waitFor()
      const stops: string[] = []
      for (let stop = 0; stop < 12; stop += 1) {
        await page.keyboard.press('Tab')
        stops.push(await focused(page))
      }
      expect(stops.slice(0, 11)).to.deep.equal([
        'a Skip to the content',
        'a Payment ledger',
        'input Find by any id or reference',
        'button Sign out',
        ...['Overview', 'Case', 'Money', 'Facts', 'Operations', 'Audit', 'Do'].map(name => `a ${name}`),
      ])
      const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
      expect(outline).not.to.equal('none')
      await page.keyboard.press('/')
      expect(await focused(page)).to.equal('input Find by any id or reference')
      await page.keyboard.type(service.invoiceIds[1] ?? '')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: `Case ${service.invoiceIds[1]}` }).waitFor()
    })

    it('does all that the mouse does with the keyboard: filters, the timeline, a form, the slider, a dialog', async () => {
      visitor = await visit(browser, service, { as: 'dana' })
      const { page } = visitor
      await visitor.open(`/console/case/${service.invoiceIds[0]}`)
      await page.locator('.timeline button').first().focus()
      await page.keyboard.press('Enter')
      await page.getByRole('status').filter({ hasText: 'As of' }).waitFor()
      await visitor.page.goto(`${service.api}/console/case/invoices`)
      await page.getByRole('button', { name: 'JSON' }).first().focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
      await page.getByLabel('State').focus()
      await page.keyboard.type('partially')
      await page.waitForURL(/state=partially_paid/)
      await page.goto(`${service.api}/console/money`)
      await page.getByRole('slider').focus()
      await page.keyboard.press('ArrowLeft')
      await page.waitForURL(/back=1/)
      await page.goto(`${service.api}/console/do/create_order`)
      await page.getByRole('button', { name: 'Add line' }).focus()
      await page.keyboard.press('Space')
      await page.keyboard.press('Shift+Tab')
      await page.getByLabel('sku').waitFor()
      expect(visitor.complaints).to.deep.equal([])
    })
  })
