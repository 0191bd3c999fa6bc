import { timeNow } from '../lib/time.ts'
import { topicOf } from '../../projections/factTopics.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import type { ManifestId } from '../../streams/ids.ts'
import { manifest, type Manifest, nextPosition } from '../../streams/manifest/index.ts'
import { type Sql, Unavailable } from '../ports.ts'
import { manifestEntity } from './entities.ts'
import { MISSING_MAX, missingIn, proveFacts } from './factCounts.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { derivedId } from '../lib/identifiers.ts'
import { recordedOf } from '../lib/storedEvents.ts'

/**
 * By manifests consumers prove that they have everything: the number of facts between two positions, and the hash of
 * their ids. Dead letters are named and not counted, so the others can be proved, and the manifest stays true.
 */

/** The read model in which facts are counted. Below its checkpoint it grows only by replays of dead letters. */
export const FACTS = 'facts_v1'
export type SealDependencies = {
  readonly ledger: Ledger
  readonly sql: Sql
  /** The checkpoint of the facts projection. */
  readonly projectedUpTo: () => Promise<bigint>
}

/** `sealed` is undefined when the log has not moved since the last manifest, which ended at `to`. */
export type SealResult = { readonly sealed: Manifest | undefined; readonly to: bigint }

export const manifestIdOf = (topic: string): ManifestId => derivedId('man', topic)

const RUN_BYTES = 16
const ATTEMPTS_MAX = 5

/** Its ids are random, so the event of another run is not taken for a repetition of this one. */
const contextOf = ({ world }: Ledger, authority: string): Context => {
  const run = `manifest-${Buffer.from(world.randomBytes(RUN_BYTES)).toString('hex')}`
  return {
    tenant: SYSTEM_TENANT,
    subject: authority,
    client: SYSTEM_TENANT,
    authority,
    correlationId: run,
    commandId: run,
    at: timeNow(world),
  }
}

/** As far as facts are projected; before the first missing fact that the manifest would not name. */
const endOf = async ({ sql, projectedUpTo }: SealDependencies, topic: string, from: bigint): Promise<bigint> => {
  const to = await projectedUpTo()
  const beyond = (await missingIn(sql, { topic, from, to }))[MISSING_MAX]
  return beyond === undefined ? to : beyond.position - 1n
}

const attempt = async (dependencies: SealDependencies, topic: string, authority: string) => {
  const { ledger, sql, projectedUpTo } = dependencies
  const id = manifestIdOf(topic)
  const { state } = await ledger.aggregates.load(manifestEntity, id)
  const from = nextPosition(state)
  const to = await endOf(dependencies, topic, from)
  if (to < from) return { sealed: undefined, to: from - 1n }
  const [proof] = await proveFacts(sql, { topics: [topic], from, to })
  // During a rebuild the checkpoint has gone back, and the count is incomplete.
  if (proof === undefined || (await projectedUpTo()) < to)
    throw new Unavailable('database', {
      effect: 'none',
      cause: new Error(`The facts up to ${to} are no longer there.`),
    })
  const { missing, ...counted } = proof
  const sealed: Manifest = { ...counted, from_position: from, to_position: to, ...(missing.length > 0 && { missing }) }
  const command = { type: 'SealManifest' as const, ...sealed }
  const handled = await handle(ledger, manifestEntity, id, { command, context: contextOf(ledger, authority) })
  return handled.ok ? { sealed, to } : undefined
}

/** Seals the facts of a topic since its last manifest. The loser of a race counts again. */
export const sealManifest = async (
  dependencies: SealDependencies,
  topic: string,
  authority: string,
): Promise<SealResult> => {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const result = await attempt(dependencies, topic, authority)
    if (result !== undefined) return result
  }
  throw new Error(`Others were first ${ATTEMPTS_MAX} times at a manifest of ${topic}.`)
}

/** When the topic was last sealed; undefined before the first time. */
export const lastSealedAt = async ({ store }: Ledger, topic: string): Promise<string | undefined> => {
  const stream = streamOf(manifest, manifestIdOf(topic))
  for await (const stored of store.readStream(stream, { direction: 'backwards', limit: 1 }))
    return recordedOf(manifest.codec, stored).metadata.at
  return undefined
}

/** The topic that the manifests themselves are published in. */
export const MANIFESTS_TOPIC = topicOf(manifest.category)
