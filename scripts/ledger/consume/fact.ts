import { createHash } from 'node:crypto'
import { z } from 'zod'
import { topicOfSubject } from '../../../projections/factTopics.ts'
import { MANIFESTS_TOPIC } from '../../../src/commands/manifests.ts'

/** A fact as a CloudEvent. Attributes that this consumer does not use are stored too. */
export const factSchema = z.looseObject({
  id: z.string().min(1),
  source: z.string().min(1),
  type: z.string(),
  subject: z.string(),
  partitionkey: z.string(),
  sequence: z.string().regex(/^\d{20}$/),
  position: z.string().regex(/^\d{1,20}$/),
  tenantid: z.string(),
  data: z.looseObject({}),
})
export type Fact = z.output<typeof factSchema>

/** The identity of a fact: the same in Kafka and over HTTP, at every delivery (CloudEvents: source and id). */
export const identityOf = ({ source, id }: Pick<Fact, 'source' | 'id'>): string => `${source} ${id}`

export const topicOf = ({ subject }: Pick<Fact, 'subject'>): string => topicOfSubject(subject) ?? MANIFESTS_TOPIC

/** The members of a fact that a proof needs. */
export type Entry = Pick<Fact, 'id' | 'source' | 'type' | 'subject' | 'tenantid'> & { readonly position: bigint }

export const entryOf = ({ id, source, type, subject, tenantid, position }: Fact): Entry => ({
  id,
  source,
  type,
  subject,
  tenantid,
  position: BigInt(position),
})

export type Range = { readonly from: bigint; readonly to: bigint }
export type Digest = { readonly count: number; readonly sha256: string }

const before = (a: Entry, b: Entry): number => (a.position < b.position ? -1 : a.position > b.position ? 1 : 0)
export const inOrder = (entries: readonly Entry[]): readonly Entry[] => entries.toSorted(before)

/** The first index whose position is at least `position`. */
const indexOf = (entries: readonly Entry[], position: bigint): number => {
  let low = 0
  for (let high = entries.length; low < high; ) {
    const middle = (low + high) >>> 1
    if ((entries[middle]?.position ?? position) < position) low = middle + 1
    else high = middle
  }
  return low
}

/** The entries within the range; `entries` are in order. */
export const within = (entries: readonly Entry[], { from, to }: Range): readonly Entry[] =>
  entries.slice(indexOf(entries, from), indexOf(entries, to + 1n))

/** The digest of a manifest, computed from the copy: the ids in the order of their positions, each with a line feed. */
export const digestOf = (entries: readonly Entry[]): Digest => {
  const hash = createHash('sha256')
  for (const { id } of entries) hash.update(`${id}\n`)
  return { count: entries.length, sha256: hash.digest('hex') }
}

export const isSame = (a: Digest, b: Digest): boolean => a.count === b.count && a.sha256 === b.sha256
