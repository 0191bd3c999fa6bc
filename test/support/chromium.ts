import { type Browser, chromium } from 'playwright-core'
import { findProgram } from './programs.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const

/**
 * The value is determined before tests are defined, so that a file defines only tests that can run here: a skipped test fails
 * the run.
 */
export const chromiumPath: string | undefined = NAMES.map(findProgram).find(path => path !== undefined)

/** The browser of this machine, since playwright-core has none. The caller closes it. */
export const openChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath ?? '',
    // The sandbox does not start as root, the user of tests in containers.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })

/** Printed by files that need a browser where there is none. */
export const reportMissingChromium = (tests: string): void =>
  void process.stdout.write(`Browser: no ${NAMES.join(', no ')} on the PATH; not run: ${tests}.\n`)
