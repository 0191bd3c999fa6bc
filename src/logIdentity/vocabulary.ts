import { partsOf, streamOf } from '../../streams/aggregate.ts'
import { ADDED_EVENTS, VOCABULARY } from '../../streams/addedEvents.ts'
import { isRejection } from '../../streams/decider.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { vocabulary } from '../../streams/vocabulary/index.ts'
import { derivedId, eventIdOf, newUuid } from '../lib/identifiers.ts'
import { newEventOf, recordedOf } from '../lib/storedEvents.ts'
import { timeNow } from '../lib/time.ts'
import { type EventStore, type ExpectedRevision, type NewEvent, Unavailable, type World } from '../ports.ts'

/**
 * The vocabulary that a build needs to read the log. It is recorded in the log, before the first event that older builds
 * cannot read, so it is restored with these events. An older build then refuses to start, instead of parking some events
 * and serving the others.
 */

const VOCABULARY_ID = derivedId(vocabulary.prefix, 'the log')
const VOCABULARY_STREAM = streamOf(vocabulary, VOCABULARY_ID)
const ATTEMPTS_MAX = 12
const BY = { tenant: SYSTEM_TENANT, subject: 'builds', client: SYSTEM_TENANT, authority: 'builds' }

/** This build is too old for the log. */
export class TooOld extends Error {
  constructor(own: number, needed: number) {
    super(
      `This build reads the events of vocabulary ${own}, and the log has events of vocabulary ${needed}: start a release whose entry in ` +
        `CHANGELOG.md names vocabulary ${needed} or a later one.`,
    )
    this.name = 'TooOld'
  }
}

type Reading = Pick<EventStore, 'readStream'>

const readVocabulary = async (store: Reading) => {
  let needed = vocabulary.decider.initial
  let revision: ExpectedRevision = 'no_stream'
  for await (const stored of store.readStream(VOCABULARY_STREAM)) {
    needed = vocabulary.decider.evolve(needed, recordedOf(vocabulary.codec, stored).event)
    revision = stored.revision
  }
  return { needed, revision }
}

export const neededVocabulary = async (store: Reading): Promise<number> => (await readVocabulary(store)).needed

/** Throws TooOld; Unavailable when the store does not answer. */
export const checkVocabulary = async (store: Reading, own = VOCABULARY): Promise<void> => {
  const needed = await neededVocabulary(store)
  if (needed > own) throw new TooOld(own, needed)
}

/** Other processes of the same build may raise it at the same time. */
const raise = async (store: EventStore, world: World, to: number): Promise<void> => {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const { needed, revision } = await readVocabulary(store)
    const decided = vocabulary.decider.decide({ type: 'RaiseVocabulary', vocabulary: to }, needed)
    const [event] = isRejection(decided) ? [] : decided
    if (event === undefined) return
    const run = newUuid(world)
    const eventId = eventIdOf(run, VOCABULARY_ID, revision === 'no_stream' ? 0n : revision + 1n)
    const metadata = { ...BY, correlationId: run, causationId: run, at: timeNow(world), schemaVersion: 0 }
    const appended = await store.append(
      VOCABULARY_STREAM,
      [newEventOf(vocabulary.codec, { event, eventId, metadata })],
      revision,
    )
    if (appended.ok) return
  }
  const cause = new Error(`Others changed the vocabulary of the log at each of ${ATTEMPTS_MAX} attempts.`)
  throw new Unavailable('event store', { effect: 'none', cause })
}

/** Raises the vocabulary of the log before it appends events that need a higher one. */
export const raisingVocabulary = (store: EventStore, world: World, added = ADDED_EVENTS): EventStore => {
  let raised = vocabulary.decider.initial
  const neededBy = (stream: string, events: readonly NewEvent[]): number =>
    Math.max(
      ...events.map(
        ({ type, metadata }) => added[`${partsOf(stream).category}/${type}.v${Number(metadata['schemaVersion'])}`] ?? 1,
      ),
    )
  return {
    ...store,
    append: async (stream, events, expected) => {
      const needed = neededBy(stream, events)
      if (needed > raised) {
        await raise(store, world, needed)
        raised = needed
      }
      return store.append(stream, events, expected)
    },
  }
}
