import { aggregates } from '../../../streams/index.ts'
import { StoreRefused } from '../../../src/adapters/eventstoredb/refusals.ts'
import type { EventStore } from '../../../src/ports.ts'
import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of the rights that the service needs on a secured event store. */

const CHECK = 'event store rights'
/** The stream of the question; no id of an aggregate has this form, so that the stream never exists. */
const NOBODY = 'doctor'
/** No stream has so many events: the store refuses the append after it has permitted it, so that nothing is written. */
const IMPOSSIBLE_REVISION = 2n ** 40n

/**
 * Resolves to the reason why the category cannot be appended to or read; undefined when it can. Throws when the store
 * does not answer, which says nothing about rights.
 */
const refusalOf = async (store: EventStore, category: string): Promise<string | undefined> => {
  const stream = `${category}-${NOBODY}`
  try {
    for await (const _ of store.readStream(stream, { limit: 1 })) break
    await store.append(stream, [questionOf()], IMPOSSIBLE_REVISION)
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

const questionOf = () => ({ id: crypto.randomUUID(), type: 'Question', data: {}, metadata: {} })

/** Reads and appends by streams of every category, without writing anything. Reading $all is shown by the feeds. */
export const checkRights = async (store: EventStore): Promise<Check> => {
  const categories = Object.keys(aggregates)
  const refusals = await Promise.all(categories.map(category => refusalOf(store, category)))
  const problems = refusals.filter(refusal => refusal !== undefined)
  if (problems.length === 0) return ok(CHECK, `reads $all, reads and appends to ${categories.length} categories`)
  return finding(
    CHECK,
    problems.join('; '),
    'Permit the user of EVENTSTORE_URL to read and write streams of these categories ($settings), and to read $all.',
  )
}
