import { aggregates } from '../../../streams/index.ts'
import { runningProcesses } from '../../../src/compose/processRecord.ts'
import { StoreRefused } from '../../../src/adapters/eventstoredb/refusals.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import { checkLog, type Compared, isMismatch, logIn } from '../../../src/logIdentity/logIdentity.ts'
import { neededVocabulary } from '../../../src/logIdentity/vocabulary.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { decidedStatuses, type TenantStatus } from '../tenantStatuses.ts'
import { type Check, finding, notUsed, ok } from './finding.ts'

/** The stream of the question; no id of an aggregate has this form, so that the stream never exists. */
const NOBODY = 'doctor'
/** No stream has so many events: the store refuses the append after it has permitted it, so that nothing is written. */
const IMPOSSIBLE_REVISION = 2n ** 40n

/** Undefined when the category can be appended to and read. Throws when the store does not answer. */
const refusalOf = async (store: EventStore, category: string): Promise<string | undefined> => {
  const stream = `${category}-${NOBODY}`
  try {
    for await (const _ of store.readStream(stream, { limit: 1 })) break
    const question = { id: crypto.randomUUID(), type: 'Question', data: {}, metadata: {} }
    await store.append(stream, [question], IMPOSSIBLE_REVISION)
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || refusalIn(error) === undefined) throw error
    return `${category}: ${reasonOf(error)}`
  }
}

/** The refusal may be wrapped. */
const refusalIn = (error: Error): StoreRefused | undefined => {
  if (error instanceof StoreRefused) return error
  return error.cause instanceof Error ? refusalIn(error.cause) : undefined
}

/** Reads and appends by streams of every category, without writing anything. Reading $all is shown by the feeds. */
export const checkRights = async (store: EventStore): Promise<Check> => {
  const categories = Object.keys(aggregates)
  const refusals = await Promise.all(categories.map(category => refusalOf(store, category)))
  const check = 'event store rights'
  const problems = refusals.filter(refusal => refusal !== undefined)
  if (problems.length === 0) return ok(check, `reads $all, reads and appends to ${categories.length} categories`)
  return finding(
    check,
    problems.join('; '),
    'Permit the user of EVENTSTORE_URL to read and write streams of these categories ($settings), and to read $all.',
  )
}

const described = ({ tenant, last }: TenantStatus): string =>
  last === undefined ? tenant : `${tenant} since ${last.at}, by ${last.by} (${last.reason})`

/** Shows suspended tenants: their refusals are no fault of the service. */
export const checkTenants = async (store: EventStore): Promise<Check> => {
  const suspended = (await decidedStatuses(store)).values().filter(({ state }) => state.isSuspended)
  const named = [...suspended].map(described)
  return ok('tenants', named.length === 0 ? 'none suspended' : `suspended: ${named.join('; ')}`)
}

export const compareLogs = async (compared: Omit<Compared, 'world'>): Promise<Check> => {
  if (!(await relationExists(compared.database.sql, 'log_identity')))
    return notUsed('log', 'no service has run on this database')
  try {
    await checkLog({ ...compared, world: realWorld() })
    return ok('log', `${(await logIn(compared.store)) ?? 'new'}, and the tables in Postgres belong to it`)
  } catch (error) {
    if (!isMismatch(error)) throw error
    return finding('log', error.message, 'Follow this advice; until then no service starts on these tables.')
  }
}

/** Names the running processes that cannot read every event of the log. */
export const checkBuilds = async ({
  store,
  database: { sql },
}: {
  readonly store: EventStore
  readonly database: Pick<Database, 'sql'>
}): Promise<Check> => {
  const check = 'builds'
  if (!(await relationExists(sql, 'service_processes'))) return notUsed(check, 'no service has run on this database')
  const [needed, running] = await Promise.all([neededVocabulary(store), runningProcesses(sql)])
  const tooOld = running.filter(({ vocabulary }) => vocabulary < needed)
  if (tooOld.length === 0)
    return ok(check, `the log needs vocabulary ${needed}; running: ${running.length}, none too old`)
  const named = tooOld.map(
    ({ name, roles, vocabulary }) => `${name} (${roles.join(', ')}) reads vocabulary ${vocabulary}`,
  )
  return finding(
    check,
    `The log needs vocabulary ${needed}. Too old: ${named.join('; ')}.`,
    `Replace these processes by a release whose entry in CHANGELOG.md names vocabulary ${needed} or a later one.`,
  )
}
