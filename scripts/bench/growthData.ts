import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startStoresOn } from './harness.ts'
import { type History, NO_HISTORY, sumOf, writePayments } from './paymentLog.ts'

/** The data directories of the growth benchmark: made once, through the event store, and used again by later runs. */

/** A directory that the service can be started on. `history` is all that was appended by this benchmark's own log. */
export type GrowthData = { readonly dataDir: string; readonly history: History }

const FILE = 'made.json'
const REFERENCE_EVERY = 4
/** The payments after which the progress is stored: an interrupted making continues there. */
const STEP_PAYMENTS = 10_000

type Print = (line: string) => void

const readMade = async (directory: string): Promise<History | undefined> => {
  const text = await readFile(join(directory, FILE), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as History)
}

/** `directory` is of this number alone. Payments after the last stored progress of an interrupted making remain. */
export const growthData = async (directory: string, payments: number, logger: Print): Promise<GrowthData> => {
  const dataDir = join(directory, 'service')
  let history = (await readMade(directory)) ?? NO_HISTORY
  if (history.payments >= payments) return { dataDir, history }
  await mkdir(directory, { recursive: true })
  const stores = await startStoresOn(dataDir, logger)
  const path = join(directory, FILE)
  try {
    while (history.payments < payments) {
      const step = Math.min(STEP_PAYMENTS, payments - history.payments)
      const added = await writePayments(stores.eventStoreUrl, { payments: step, referenceEvery: REFERENCE_EVERY })
      history = sumOf(history, added)
      await writeFile(`${path}.new`, JSON.stringify(history))
      await rename(`${path}.new`, path)
      logger(`${history.payments} of ${payments} payments are in the log`)
    }
    return { dataDir, history }
  } finally {
    await stores.stop()
  }
}
