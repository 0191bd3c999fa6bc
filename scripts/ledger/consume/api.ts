import { z } from 'zod'
import { StartupError } from '../../../src/lib/startupError.ts'
import { createLedgerClient, LedgerError, type Operations } from '../../client/src/index.ts'
import { type Digest, type Fact, factSchema, type Range } from './fact.ts'

const pageSchema = z.object({
  items: z.array(factSchema),
  page: z.object({ next_cursor: z.string(), has_more: z.boolean(), as_of_position: z.string() }),
})
export type Page = z.output<typeof pageSchema>

/** The start of a page: after a cursor, or at a position. */
export type Start = { readonly cursor: string } | { readonly from_position: string }

export type Api = {
  readonly page: (start: Start) => Promise<Page>
  readonly manifest: (topic: string, range: Range) => Promise<Digest>
  /** The digests of adjacent ranges, as long as the service counts them at once, which together are the whole range. */
  readonly manifests: (topic: string, range: Range) => AsyncIterable<Range & Digest>
  /** In the order of their arrival. A fact that was delivered late has a place after the range. */
  readonly facts: (range: Range) => AsyncIterable<Fact>
}

export type ApiOptions = {
  readonly api: string
  readonly token: () => Promise<string>
  readonly signal: AbortSignal
  /** The time limit for retries; infinite for a consumer that follows. */
  readonly retryMaxMs: number
}

/** Reading continues from the position instead, after which facts that were delivered late meanwhile do not come. */
export class CursorExpired extends Error {
  constructor() {
    super('The cursor is too old.')
    this.name = 'CursorExpired'
  }
}

/** A cursor is made for one tenant, with the secret of one log. */
const FOREIGN_CURSOR =
  'The ledger did not issue the cursor of this copy for this tenant: the copy is of another tenant or of another log. ' +
  'Correct --tenant or --api, or use another folder.'

type ManifestTopic = NonNullable<Operations['GET /events/manifest']['request']['query']>['topic']

const PAGE = 100
const REQUEST_MAX_MS = 60_000

const rethrow = (error: unknown): never => {
  const code = error instanceof LedgerError ? error.code : undefined
  if (code === 'cursor_expired') throw new CursorExpired()
  if (code === 'cursor_invalid') throw new StartupError(FOREIGN_CURSOR)
  throw error
}

export const createApi = ({ api, token, signal, retryMaxMs }: ApiOptions): Api => {
  const retry = { attemptsMax: Infinity, deadlineMs: retryMaxMs, attemptMs: REQUEST_MAX_MS }
  const { request } = createLedgerClient({ baseUrl: api, token, signal, retry })
  const page: Api['page'] = async start => {
    const { data } = await request('GET /events', { query: { limit: PAGE, ...start } }).catch(rethrow)
    const parsed = pageSchema.safeParse(data)
    if (parsed.success) return parsed.data
    throw new StartupError('GET /events was answered with a body that the contract does not have.', parsed.error)
  }
  const digestOf = async (topic: string, from: bigint, to?: bigint) => {
    const query = { topic: topic as ManifestTopic, from: from.toString(), to: to?.toString() }
    const [digest] = (await request('GET /events/manifest', { query })).data.items
    if (digest === undefined) throw new StartupError(`GET /events/manifest has no digest from position ${from}.`)
    return digest
  }
  return {
    page,
    manifest: (topic, { from, to }) => digestOf(topic, from, to),
    manifests: async function* (topic, { from: first, to }) {
      for (let from = first; from <= to; ) {
        // Without an end the range is the longest that the service counts. If that is enough, the end is named.
        const longest = await digestOf(topic, from)
        const isEnough = BigInt(longest.to_position) > to
        const { count, sha256, to_position } = isEnough ? await digestOf(topic, from, to) : longest
        yield { from, to: BigInt(to_position), count, sha256 }
        from = BigInt(to_position) + 1n
      }
    },
    facts: async function* ({ from, to }) {
      for (let start: Start = { from_position: from.toString() }; ; ) {
        const { items, page: end } = await page(start)
        for (const fact of items) {
          if (BigInt(fact.position) >= from && BigInt(fact.position) <= to) yield fact
        }
        if (!end.has_more) return
        start = { cursor: end.next_cursor }
      }
    },
  }
}

/** The position up to which there are facts, if the log ends before this one, as after the restore of a backup. */
export const endBefore = async (
  { page, manifest }: Pick<Api, 'page' | 'manifest'>,
  topic: string,
  position: bigint,
): Promise<bigint | undefined> => {
  try {
    await manifest(topic, { from: position, to: position })
    return undefined
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'validation_failed') throw error
    return BigInt((await page({ from_position: position.toString() })).page.as_of_position)
  }
}
