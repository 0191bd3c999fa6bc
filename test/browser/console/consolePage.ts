import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import type { TestService } from '../../support/service.ts'

/** A person at the console: a browser that notes whatever a page complains about. */

const TIMEOUT_MS = 60_000

export type Visitor = {
  readonly context: BrowserContext
  readonly page: Page
  /** Errors of the console, of scripts, and violations of the policy of the page. */
  readonly complaints: string[]
  /** Opens a page of the console, signing in as one of the users to choose from where that is asked. */
  readonly open: (path: string) => Promise<void>
}

/** In every document: a violation of the policy becomes an error of the console. */
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', event =>
  console.error('policy', event.violatedDirective, event.blockedURI, event.sourceFile))`

export const watch = (page: Page, complaints: string[]): void => {
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', error => complaints.push(error.message))
}

export const signedIn = (page: Page): Promise<void> => page.getByRole('button', { name: 'Sign out' }).waitFor()

/** Opens a browser's context for one person. The caller closes it. */
export const visit = async (
  browser: Browser,
  service: TestService,
  { as, ...options }: BrowserContextOptions & { readonly as: string },
): Promise<Visitor> => {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options })
  context.setDefaultTimeout(TIMEOUT_MS)
  await context.addInitScript(REPORT_VIOLATIONS)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.api })
  const page = await context.newPage()
  const complaints: string[] = []
  watch(page, complaints)
  const open = async (path: string): Promise<void> => {
    await page.goto(`${service.api}${path}`)
    const choice = page.getByRole('button', { name: `${as} of` })
    const out = page.getByRole('button', { name: 'Sign out' })
    await choice.or(out).first().waitFor()
    if (await choice.isVisible()) await choice.click()
    await signedIn(page)
  }
  return { context, page, complaints, open }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Violation = { readonly id: string; readonly impact: string; readonly nodes: readonly { readonly html: string }[] }

/** What axe finds that is serious or critical, with the first element of each. By evaluation: a script would be blocked. */
export const accessibilityFaults = async (page: Page, rules?: readonly string[]): Promise<readonly string[]> => {
  await page.evaluate(AXE)
  const options = { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) }
  const { violations } = await page.evaluate<{ violations: readonly Violation[] }>(
    `axe.run(document, ${JSON.stringify(options)})`,
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
}

/** Where the keyboard is: the role and the text of the focused element. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate<string>(`(() => {
    const element = document.activeElement
    const label = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent
    return element.localName + ' ' + label.trim().replaceAll(/\\s+/g, ' ').slice(0, 80)
  })()`)
