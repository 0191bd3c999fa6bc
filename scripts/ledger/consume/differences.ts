import type { Api } from './api.ts'
import { digestOf, type Entry, entryOf, identityOf, inOrder, isSame, type Range, topicOf, within } from './fact.ts'

type Surplus = Entry & { readonly why: 'twice' | 'unknown to the ledger' }
export type Differences = { readonly missing: readonly Entry[]; readonly surplus: readonly Surplus[] }

const NONE: Differences = { missing: [], surplus: [] }
/** Ranges with at most so many facts are listed, not halved further. */
const LISTED_MAX = 50

/** Compares two lists in order. The second occurrence of an id is surplus. */
const compare = (had: readonly Entry[], expected: readonly Entry[]): Differences => {
  const open = new Map(expected.map(entry => [identityOf(entry), entry]))
  const identities = new Set(open.keys())
  const surplus: Surplus[] = []
  for (const entry of had) {
    const identity = identityOf(entry)
    if (!identities.has(identity)) surplus.push({ ...entry, why: 'unknown to the ledger' })
    else if (!open.delete(identity)) surplus.push({ ...entry, why: 'twice' })
  }
  return { missing: [...open.values()], surplus }
}

/** Lists the facts of the range, up to `count`, the number in the manifest: after those the rest need not be read. */
const list = async (api: Api, topic: string, range: Range, count: number): Promise<readonly Entry[]> => {
  const entries: Entry[] = []
  for await (const fact of api.facts(range)) {
    if (topicOf(fact) === topic) entries.push(entryOf(fact))
    if (entries.length >= count) break
  }
  return entries
}

/** `entries`: those of the token's tenant, in order. A range that differs is halved until it can be listed. */
export const differencesIn = async (
  api: Api,
  topic: string,
  range: Range,
  entries: readonly Entry[],
): Promise<Differences> => {
  const had = within(entries, range)
  const expected = await api.manifest(topic, range)
  if (isSame(digestOf(had), expected)) return NONE
  if (expected.count === 0) return compare(had, [])
  const { from, to } = range
  const isSmall = had.length + expected.count <= LISTED_MAX || had.length === 0 || from === to
  if (isSmall) return compare(had, inOrder(await list(api, topic, range, expected.count)))
  const middle = (from + to) / 2n
  const left = await differencesIn(api, topic, { from, to: middle }, had)
  const right = await differencesIn(api, topic, { from: middle + 1n, to }, had)
  return { missing: [...left.missing, ...right.missing], surplus: [...left.surplus, ...right.surplus] }
}
