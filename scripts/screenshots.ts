import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { readConfig } from '../src/settings/config.ts'
import { identitiesOf, TENANT } from './demo/identities.ts'
import { planOf } from './demo/plan.ts'
import { runPlan } from './demo/planExecution.ts'
import { findOrStart } from './demo/service.ts'
import { sources } from './demo/sources.ts'

/** `npm run screenshots`: the pages of the console on the demo's data, some of them for the README. */

const OUTPUT = fileURLToPath(new URL('../.data/screenshots/', import.meta.url))
const SHOWN_OUTPUT = fileURLToPath(new URL('../src/console/screenshots/', import.meta.url))
const INVOICES = 412
const QUALITY = 60
const SETTLE_MS = 700
/** The facts of the last minutes are on the page at first. */
const USERS: Readonly<Record<string, string>> = { chinook: 'dana', operators: 'olga' }

type Shot = { readonly name: string; readonly path: string; readonly tenant?: 'operators'; readonly ready: string }

const SHOTS: readonly Shot[] = [
  { name: 'overview', path: '', ready: 'figure canvas' },
  { name: 'invoices', path: '/case/invoices', ready: 'table' },
  { name: 'case', path: '/case/<refunded>', ready: '.timeline li' },
  { name: 'money', path: '/money', ready: 'tfoot td' },
  { name: 'facts', path: '/facts', ready: '.timeline li' },
  { name: 'subscriptions', path: '/facts/subscriptions', ready: '.empty, table' },
  { name: 'operations', path: '/operations', ready: 'table', tenant: 'operators' },
  { name: 'audit', path: '/audit', ready: 'table' },
  { name: 'proof', path: '/audit/proof?event_id=<event>', ready: '.check li' },
  { name: 'do', path: '/do/create_order', ready: 'form.fields' },
]

/** The six of the README: their scheme, the width of the page, and their name. */
const SHOWN = new Set([
  'overview-light-wide',
  'case-light-wide',
  'money-dark-wide',
  'facts-light-wide',
  'proof-dark-wide',
  'invoices-light-narrow',
])

const SCHEMES = ['light', 'dark'] as const
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } } as const

/** playwright-core has no browser of its own. */
const chromiumPath = (): string => {
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  for (const name of names)
    try {
      return execFileSync('which', [name], { encoding: 'utf8' }).trim()
    } catch {
      // The next one may be there.
    }
  throw new Error(`No ${names.join(', no ')} is on the PATH.`)
}

const openPage = async (
  browser: Browser,
  api: string,
  user: string,
  options: { scheme: 'light' | 'dark'; size: keyof typeof SIZES },
): Promise<Page> => {
  const context = await browser.newContext({
    colorScheme: options.scheme,
    viewport: SIZES[options.size],
    locale: 'en-GB',
    timezoneId: 'UTC',
  })
  const page = await context.newPage()
  await page.goto(`${api}/console`)
  await page.getByRole('button', { name: `${user} of` }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  return page
}

/** A refunded payment and the event that approved its invoice: cases with something to see. */
const subjectsOf = async (page: Page): Promise<Readonly<Record<string, string>>> => {
  await page.locator('nav').getByRole('link', { name: 'Case' }).click()
  await page.goto(`${page.url()}/payments?state=refunded`)
  const refunded = await page.locator('td a.id').first().innerText()
  await page.locator('td a.id').first().click()
  const approval = page.locator('.timeline li').filter({ hasText: 'Invoice approved' })
  await approval.locator('summary').first().click()
  const event = await approval.locator('.facts .id').first().innerText()
  return { refunded, event }
}

const capture = async (page: Page): Promise<Buffer> => {
  const devTools = await page.context().newCDPSession(page)
  const { data } = await devTools.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY })
  return Buffer.from(data, 'base64')
}

const shoot = async (browser: Browser, api: string): Promise<number> => {
  let written = 0
  for (const scheme of SCHEMES)
    for (const size of ['wide', 'narrow'] as const) {
      const pages = {
        [TENANT]: await openPage(browser, api, USERS[TENANT] ?? '', { scheme, size }),
        operators: await openPage(browser, api, USERS['operators'] ?? '', { scheme, size }),
      }
      const page = pages[TENANT]
      if (page === undefined) throw new Error('No page was opened.')
      const subjects = await subjectsOf(page)
      for (const { name, path, ready, tenant } of SHOTS) {
        const target = tenant === undefined ? page : pages[tenant]
        await target.goto(
          `${api}/console${path.replaceAll(/<(\w+)>/g, (_, subject: string) => subjects[subject] ?? '')}`,
        )
        await target.locator(ready).first().waitFor()
        await target.waitForTimeout(SETTLE_MS)
        const file = `${name}-${scheme}-${size}`
        const image = await capture(target)
        await writeFile(join(OUTPUT, `${file}.webp`), image)
        if (SHOWN.has(file)) await writeFile(join(SHOWN_OUTPUT, `${file}.webp`), image)
        written += 1
      }
      for (const opened of Object.values(pages)) await opened.context().close()
    }
  return written
}

const main = async (): Promise<void> => {
  const signal = new AbortController().signal
  const config = { ...readConfig(), dataDir: join(OUTPUT, 'data') }
  await mkdir(OUTPUT, { recursive: true })
  await mkdir(SHOWN_OUTPUT, { recursive: true })
  const service = await findOrStart(config, { port: 0, signal, onStarting: () => undefined })
  const browser = await chromium.launch({
    executablePath: chromiumPath(),
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
  try {
    const plan = planOf(sources.slice(0, INVOICES))
    await runPlan(identitiesOf(config, service.addresses, signal), plan, () => undefined)
    const written = await shoot(browser, service.addresses.api)
    process.stdout.write(`${written} screenshots are in ${OUTPUT}, those of the README in ${SHOWN_OUTPUT}.\n`)
  } finally {
    await browser.close()
    await service.stop()
  }
}

await main()
