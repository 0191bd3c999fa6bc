import { z } from 'zod'
import { MANIFESTS_TOPIC } from '../../../src/commands/manifests.ts'
import { type Api, endBefore } from './api.ts'
import { fileOf, type State } from './copy.ts'
import { type Differences, differencesIn } from './differences.ts'
import { aheadOfLog } from './http.ts'
import { type Digest, digestOf, type Entry, entryOf, factSchema, inOrder, isSame, type Range, within } from './fact.ts'
import { factLines } from './jsonLines.ts'

type RangeProof = Range & { readonly had: Digest; readonly wanted: Digest; readonly agrees: boolean }

export type TopicProof = Differences & {
  readonly topic: string
  /** In order. The HTTP copy has one range, the Kafka copy one for each manifest. */
  readonly ranges: readonly RangeProof[]
  /** Defects other than missing or surplus facts, one sentence each. */
  readonly findings: readonly string[]
  /** Facts of the copy outside every range: newer than the last manifest, or older than the topic's retention. */
  readonly unproved: number
}

export type Verified = { readonly ok: boolean; readonly topics: readonly TopicProof[] }

/** The documents of this form in the file of a topic, and a finding for each other line. */
const load = async <T>(folder: string, topic: string, schema: z.ZodType<T>, noun: string) => {
  const documents: T[] = []
  const findings: string[] = []
  const path = fileOf(folder, topic)
  for await (const { number, value } of factLines(path)) {
    const parsed = schema.safeParse(value)
    if (parsed.success) documents.push(parsed.data)
    else findings.push(`Line ${number} of ${path} is no ${noun}.`)
  }
  return { documents, findings }
}

const loadFacts = async (folder: string, topic: string) => {
  const { documents, findings } = await load(folder, topic, factSchema, 'fact')
  return { entries: inOrder(documents.map(entryOf)), findings }
}

const isProved = ({ ranges, missing, surplus, findings }: TopicProof): boolean =>
  ranges.every(({ agrees }) => agrees) && missing.length + surplus.length + findings.length === 0

const verifiedOf = (topics: readonly TopicProof[]): Verified => ({ ok: topics.every(isProved), topics })

const proofOf = (had: readonly Entry[], range: Range, { count, sha256 }: Digest): RangeProof => {
  const wanted = { count, sha256 }
  const digest = digestOf(had)
  return { ...range, had: digest, wanted, agrees: isSame(digest, wanted) }
}

/** In parts that the service counts at once; `entries` are those of the token's tenant. */
const differencesOf = async (
  ranges: readonly RangeProof[],
  topic: string,
  entries: readonly Entry[],
  api: Api,
): Promise<Differences> => {
  const differences: Differences[] = []
  for (const range of ranges.filter(({ agrees }) => !agrees))
    for await (const { from, to } of api.manifests(topic, range))
      differences.push(await differencesIn(api, topic, { from, to }, entries))
  return {
    missing: differences.flatMap(({ missing }) => missing),
    surplus: differences.flatMap(({ surplus }) => surplus),
  }
}

/** Verification against GET /events/manifest, from the beginning of the log to the copy's position. */
export const verifyOverHttp = async (folder: string, { topics, position }: State, api: Api): Promise<Verified> => {
  const proofs: TopicProof[] = []
  for (const topic of topics) {
    const { entries, findings } = await loadFacts(folder, topic)
    const copied = BigInt(position)
    if (copied < 0n) {
      proofs.push({ topic, ranges: [], findings: ['Nothing was read yet.'], missing: [], surplus: [], unproved: 0 })
      continue
    }
    const end = await endBefore(api, topic, copied)
    const range = { from: 0n, to: end ?? copied }
    if (end !== undefined) findings.push(aheadOfLog(copied, end))
    const ranges: RangeProof[] = []
    for await (const { from, to, ...digest } of api.manifests(topic, range))
      ranges.push(proofOf(within(entries, { from, to }), { from, to }, digest))
    const differences = await differencesOf(ranges, topic, entries, api)
    const unproved = entries.length - within(entries, range).length
    proofs.push({ topic, ranges, findings, ...differences, unproved })
  }
  return verifiedOf(proofs)
}

const position = z.string().regex(/^\d{1,20}$/)
const sealedSchema = z.object({
  tenantid: z.string(),
  data: z.object({
    topic: z.string(),
    from_position: position.transform(BigInt),
    to_position: position.transform(BigInt),
    count: z.int(),
    sha256: z.string(),
    missing: z.array(z.object({ id: z.string() })).default([]),
  }),
})
type Sealed = z.output<typeof sealedSchema>['data']

const manifestsIn = async (folder: string) => {
  const { documents, findings } = await load(folder, MANIFESTS_TOPIC, sealedSchema, 'manifest')
  const manifests = documents.map(({ data }) => data)
  return { manifests: manifests.toSorted((a, b) => (a.from_position < b.from_position ? -1 : 1)), findings }
}

/** A ledger that was restored from an older backup counts the positions since then again. */
const overlap = (before: Sealed, { from_position: from, to_position: to }: Sealed): string =>
  `The manifests of positions ${before.from_position} to ${before.to_position} and ${from} to ${to} overlap: the ledger was restored from an ` +
  'older backup, and the topics have facts that it has lost. Its operator must empty the topics: scripts/ledger/DISASTER.md.'

/** Facts in a gap cannot be verified; those before the first manifest are no longer in the topic. */
const gapsIn = (manifests: readonly Sealed[]): readonly string[] =>
  manifests.flatMap((sealed, index) => {
    const { from_position: from } = sealed
    const before = manifests[index - 1]
    if (before === undefined) return from === 0n ? [] : [`Nothing before position ${from} is proved.`]
    const expected = before.to_position + 1n
    if (from < expected) return [overlap(before, sealed)]
    return from === expected
      ? []
      : [`There is no manifest of positions ${expected} to ${from - 1n}: the topic ${MANIFESTS_TOPIC} has it.`]
  })

const NO_MANIFEST = 'There is no manifest of it yet: npm run ledger -- manifest, and consume again.'

const rangeOf = ({ from_position: from, to_position: to }: Sealed): Range => ({ from, to })

/** Facts that were missing when the manifest was sealed may have come since, and are left out. */
const countedBy = (sealed: Sealed, entries: readonly Entry[]): readonly Entry[] => {
  const missing = new Set(sealed.missing.map(({ id }) => id))
  return within(entries, rangeOf(sealed)).filter(({ id }) => !missing.has(id))
}

/** Verification against the manifests in the copy, which cover all tenants; `own` lists what that tenant lacks. */
export const verifyByManifests = async (
  folder: string,
  { topics }: State,
  own?: { api: Api; tenant: string },
): Promise<Verified> => {
  const { manifests, findings: ofManifests } = await manifestsIn(folder)
  const proofs: TopicProof[] = []
  for (const topic of topics.filter(name => name !== MANIFESTS_TOPIC)) {
    const { entries, findings } = await loadFacts(folder, topic)
    const about = manifests.filter(sealed => sealed.topic === topic)
    const ranges = about.map(sealed => proofOf(countedBy(sealed, entries), rangeOf(sealed), sealed))
    // With a token, missing facts of its tenant are listed; those of other tenants are reported by range only.
    const ofTenant = entries.filter(({ tenantid }) => tenantid === own?.tenant)
    proofs.push({
      topic,
      ranges,
      findings: [...ofManifests, ...findings, ...(about.length === 0 ? [NO_MANIFEST] : gapsIn(about))],
      ...(own === undefined ? { missing: [], surplus: [] } : await differencesOf(ranges, topic, ofTenant, own.api)),
      // Manifests that overlap count facts twice.
      unproved: Math.max(0, entries.length - ranges.reduce((sum, { had }) => sum + had.count, 0)),
    })
  }
  return verifiedOf(proofs)
}
