import { readFile } from 'node:fs/promises'
import { serverVersionOf } from '../../../src/adapters/eventstoredb/serverVersion.ts'
import type { Database } from '../../../src/ports.ts'
import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import { type Check, finding, ok, answered } from './finding.ts'

/** The check of versions: of this build, and of the servers that it stands on. */

export type Versions = {
  readonly build: string
  readonly postgres: string | null
  readonly event_store: string | null
}

const POSTGRES_MAJOR_MIN = 14
const PACKAGE = new URL('../../../package.json', import.meta.url)

const orNull = async (work: Promise<string> | undefined): Promise<string | null> => {
  if (work === undefined) return null
  return await answered(work).catch((error: unknown) => `unknown (${reasonOf(error)})`)
}

const postgresVersion = async ({ sql }: Database): Promise<string> =>
  (await sql<{ server_version: string }>('show server_version'))[0]?.server_version ?? ''

/** Reads the versions of the servers that answer; one that does not is null. */
export const readVersions = async (database: Database | undefined, store: string | undefined): Promise<Versions> => {
  const { version: build } = JSON.parse(await readFile(PACKAGE, 'utf8')) as { version: string }
  const [postgres, event_store] = await Promise.all([
    orNull(database && postgresVersion(database)),
    orNull(store === undefined ? undefined : serverVersionOf(store)),
  ])
  return { build, postgres, event_store }
}

export const checkVersions = ({ build, postgres, event_store }: Versions): Check => {
  const detail = `build ${build}, Postgres ${postgres ?? 'not reached'}, event store ${event_store ?? 'not reached'}`
  if (postgres === null || !/^\d/.test(postgres) || Number.parseInt(postgres) >= POSTGRES_MAJOR_MIN)
    return ok('versions', detail)
  return finding(
    'versions',
    `Postgres ${postgres} is too old.`,
    `Use Postgres ${POSTGRES_MAJOR_MIN} or newer; the tables need its features.`,
  )
}
