import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startEmbeddedServices } from '../../src/embedded/startEmbedded.ts'
import type { StoreAddresses } from './harness.ts'
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

const storeMade = async (directory: string, made: History): Promise<void> => {
  const path = join(directory, FILE)
  await writeFile(`${path}.new`, JSON.stringify(made))
  await rename(`${path}.new`, path)
}

const dataDirIn = (directory: string): string => join(directory, 'service')

export type RunningStores = StoreAddresses & {
  readonly pids: Readonly<Record<string, number>>
  readonly stop: () => Promise<void>
}

/** The event store and Postgres of a data directory, without the service. */
export const startStoresOn = async (dataDir: string, logger: Print): Promise<RunningStores> => {
  const onExit = (reason: Error): void => logger(reason.message)
  const started = await startEmbeddedServices({
    dataDir,
    database: true,
    eventStore: true,
    log: () => undefined,
    onExit,
  })
  const { databaseUrl = '', eventStoreUrl = '', pids, stop } = started
  return { databaseUrl, eventStoreUrl, pids, stop }
}

/** Payments that were appended after the last stored progress of an interrupted making are surplus, and remain. */
const append = async (directory: string, payments: number, logger: Print): Promise<History> => {
  let made = (await readMade(directory)) ?? NO_HISTORY
  if (made.payments >= payments) return made
  await mkdir(directory, { recursive: true })
  const stores = await startStoresOn(dataDirIn(directory), logger)
  try {
    while (made.payments < payments) {
      const step = Math.min(STEP_PAYMENTS, payments - made.payments)
      const added = await writePayments(stores.eventStoreUrl, { payments: step, referenceEvery: REFERENCE_EVERY })
      made = sumOf(made, added)
      await storeMade(directory, made)
      logger(`${made.payments} of ${payments} payments are in the log`)
    }
    return made
  } finally {
    await stores.stop()
  }
}

/** The data of at least so many payments. `directory` is of this number of payments alone. */
export const growthData = async (directory: string, payments: number, logger: Print): Promise<GrowthData> => ({
  dataDir: dataDirIn(directory),
  history: await append(directory, payments, logger),
})

/** Removes data that was made earlier, where measured payments would be too many beside those that were made. */
export const removeGrowthData = (directory: string): Promise<void> => rm(directory, { recursive: true, force: true })
