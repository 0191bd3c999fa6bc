import { type Browser, chromium } from 'playwright-core'
import { findWorkingProgram } from './programs.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const

// The sandbox does not start as root, the user of tests in containers.
const SANDBOX = process.getuid?.() === 0 ? ['--no-sandbox'] : []
const TRIAL = ['--headless', '--dump-dom', ...SANDBOX, 'about:blank']

/**
 * The value is determined before tests are defined, so that a file defines only tests that can run here: a skipped test fails
 * the run.
 */
export const chromiumPath: string | undefined = NAMES.values()
  .map(name => findWorkingProgram(name, TRIAL))
  .find(path => path !== undefined)

/** The browser of this machine, since playwright-core has none. The caller closes it. */
export const openChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath ?? '',
    args: SANDBOX,
  })

/** Printed by files that need a browser where there is none. */
export const reportMissingChromium = (tests: string): void =>
  void process.stdout.write(`Browser: no ${NAMES.join(', no ')} on the PATH works; not run: ${tests}.\n`)
