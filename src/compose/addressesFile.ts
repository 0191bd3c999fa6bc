import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { holderOf } from '../embedded/dataDirectory.ts'

/** The addresses of the running service, in a file of the data directory, for the operators' commands. */
const addressesSchema = z.object({
  api: z.string(),
  event_store: z.string(),
  postgres: z.string(),
  kafka: z.string().nullable(),
  issuer: z.string(),
  /** The URL of the metrics; null where there are none. */
  metrics: z.string().nullable(),
  /** The process ids of the service and of each embedded dependency. */
  pids: z.record(z.string(), z.int()),
})
export type Addresses = z.infer<typeof addressesSchema>

const fileIn = (dataDir: string): string => join(dataDir, 'addresses.json')

/** Private: the address of Postgres contains its password. Resolves to a function that removes the file. */
export const publishAddresses = async (dataDir: string, addresses: Addresses): Promise<() => Promise<void>> => {
  // Renamed when it is complete: a command may be reading it at this moment.
  const unfinished = `${fileIn(dataDir)}.new`
  await writeFile(unfinished, `${JSON.stringify(addresses, null, 2)}\n`, { mode: 0o600 })
  await rename(unfinished, fileIn(dataDir))
  return () => rm(fileIn(dataDir), { force: true })
}

/** The addresses of the service that runs on this data directory; undefined when none does. */
export const readAddresses = async (dataDir: string): Promise<Addresses | undefined> => {
  const text = await readFile(fileIn(dataDir), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const addresses = addressesSchema.parse(JSON.parse(text))
  // A service that was killed leaves its file behind, and its pid to any other process.
  const holder = await holderOf(dataDir)
  return holder !== undefined && holder === addresses.pids['service'] ? addresses : undefined
}
