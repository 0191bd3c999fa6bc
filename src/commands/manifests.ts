import { createHash } from 'node:crypto'
import { type FactId, factIds } from '../../projections/facts/queries.ts'
import { topicOf, topicOfSubject } from '../../projections/topics.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { HOUSE_TENANT } from '../../streams/envelope.ts'
import type { ManifestId } from '../../streams/ids.ts'
import { manifest, type Manifest, nextPosition } from '../../streams/manifest/index.ts'
import { type Sql, Unavailable } from '../ports.ts'
import { manifestEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'
import { derivedId } from './identifiers.ts'
import { recordedOf } from './recorded.ts'

/** What consumers prove by that they have everything: how many facts there are between two positions, and which. */

/** The read model that the facts are counted in. Nothing before its checkpoint will ever be added to it. */
export const FACTS = 'facts_v1'
const BATCH = 10_000

export type Counted = { readonly topic: string; readonly count: number; readonly sha256: string }

export type FactRange = {
  readonly topics: readonly string[]
  /** All tenants when absent. */
  readonly tenant?: string
  /** Both inclusive. */
  readonly from: bigint
  readonly to: bigint
  readonly signal?: AbortSignal
}

const counterOf = (topic: string) => {
  const hash = createHash('sha256')
  let count = 0
  return {
    add: (rows: readonly FactId[]): void => {
      const ids = rows.filter(({ subject }) => topicOfSubject(subject) === topic).map(({ id }) => `${id}\n`)
      count += ids.length
      hash.update(ids.join(''))
    },
    end: (): Counted => ({ topic, count, sha256: hash.digest('hex') }),
  }
}

/**
 * Counts and hashes the facts of each topic: ids in the order of their positions, each followed by a line feed. In
 * batches, so that any range takes little memory. Throws what the signal aborted with.
 */
export const countFacts = async (sql: Sql, range: FactRange): Promise<readonly Counted[]> => {
  const { topics, tenant, from, to, signal } = range
  const counters = topics.map(counterOf)
  for (let after = from - 1n; after < to; ) {
    signal?.throwIfAborted()
    const { text, values } = factIds({ tenant, after, to, limit: BATCH })
    const rows = await sql<FactId>(text, values)
    for (const counter of counters) counter.add(rows)
    after = rows.length < BATCH ? to : (rows.at(-1)?.position ?? to)
  }
  return counters.map(counter => counter.end())
}

export type SealParts = {
  readonly ledger: Ledger
  readonly sql: Sql
  /** The checkpoint of the facts. */
  readonly reached: () => Promise<bigint>
}

/** `sealed` is undefined when the log has not moved since the last manifest, which ended at `to`. */
export type Sealing = { readonly sealed: Manifest | undefined; readonly to: bigint }

export const manifestIdOf = (topic: string): ManifestId => derivedId('man', topic)

const RUN_BYTES = 16
const ATTEMPTS_MAX = 5

/** In the name of the ledger itself. The run makes the ids: what another one has counted is not taken for ours. */
const contextOf = ({ world }: Ledger, authority: string): Context => {
  const run = `manifest-${Buffer.from(world.randomBytes(RUN_BYTES)).toString('hex')}`
  return {
    tenant: HOUSE_TENANT,
    subject: authority,
    client: HOUSE_TENANT,
    authority,
    correlationId: run,
    commandId: run,
    at: new Date(world.now()).toISOString(),
  }
}

const attempt = async ({ ledger, sql, reached }: SealParts, topic: string, authority: string) => {
  const id = manifestIdOf(topic)
  const { state } = await ledger.loader.load(manifestEntity, id)
  const from = nextPosition(state)
  const to = await reached()
  if (to < from) return { sealed: undefined, to: from - 1n }
  const [counted] = await countFacts(sql, { topics: [topic], from, to })
  // A table that is being made anew takes its checkpoint back: what was counted in it is not all.
  if (counted === undefined || (await reached()) < to)
    throw new Unavailable('database', 'none', new Error(`The facts up to ${to} are no longer there.`))
  const sealed: Manifest = { ...counted, from_position: from, to_position: to }
  const command = { type: 'SealManifest' as const, ...sealed }
  const handled = await handle(ledger, manifestEntity, id, { command, context: contextOf(ledger, authority) })
  return handled.ok ? { sealed, to } : undefined
}

/**
 * Seals what the topic has had since its last manifest, up to where the facts have got. Who loses the race counts again,
 * from behind what the other one has sealed.
 */
export const sealManifest = async (parts: SealParts, topic: string, authority: string): Promise<Sealing> => {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const sealing = await attempt(parts, topic, authority)
    if (sealing !== undefined) return sealing
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
