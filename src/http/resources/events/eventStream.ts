import { type FeedPlace, isAfter, type TailFact } from '../../../../projections/facts/queries.ts'
import { withSchemaBaseUrl } from '../../../../streams/facts.ts'
import { type EventsCall, type Found, matchesFilters, readFacts, sealPlace, startPlaceOf } from './readFacts.ts'
import type { LiveQueue } from './caughtUpStreams.ts'
import { Problem } from '../../response/problemCatalogue.ts'
import type { Streamed } from '../../route.ts'

/**
 * Server-sent events: the history first, then new facts, until the client disconnects.
 *
 *   reading    batches from the database, a few streams at a time
 *      │ caught up        ▲ the queue overflowed
 *      ▼                  │
 *   following  new facts from the tail, which polls once for all streams of the process
 *
 * The queue of new facts is opened before the first read. A fact that becomes visible in between is in both, and is
 * sent once, since the stream knows its place in the order of arrival.
 */

const BATCH_MAX = 100
const COMMENT_EVERY_MS = 15_000
/** The interval at which the reader's permission is checked again. */
const RECHECK_EVERY_MS = 5_000

type Send = (chunk: string) => Promise<void>

/** Sends facts, and tracks the place of the stream and the place that its reader knows. */
const createSender = (call: EventsCall, from: FeedPlace, send: Send) => {
  const { world } = call.ledger
  let place = from
  let knownToReader = from
  let quietSinceMs = world.monotonicMs()
  return {
    place: () => place,
    send: async (facts: readonly Found[]): Promise<void> => {
      for (const fact of facts) {
        const data = JSON.stringify(withSchemaBaseUrl(fact.event, call.schemaBaseUrl))
        await send(`id: ${sealPlace(call, fact)}\nevent: ${fact.event.type}\ndata: ${data}\n\n`)
        place = fact
        knownToReader = fact
        quietSinceMs = world.monotonicMs()
      }
    },
    skipTo: (to: FeedPlace): void => {
      if (isAfter(to, place)) place = to
    },
    /** An id without data is no event, but advances Last-Event-ID past facts that the filters exclude. */
    comment: async (): Promise<void> => {
      if (world.monotonicMs() - quietSinceMs < COMMENT_EVERY_MS) return
      quietSinceMs = world.monotonicMs()
      await send(isAfter(place, knownToReader) ? `: still here\nid: ${sealPlace(call, place)}\n\n` : ': still here\n\n')
      knownToReader = place
    },
  }
}
type Sender = ReturnType<typeof createSender>

const sendNews = async (call: EventsCall, sender: Sender, news: readonly TailFact[]): Promise<void> => {
  for (const fact of news) {
    if (!isAfter(fact, sender.place())) continue
    if (matchesFilters(call, fact)) await sender.send([fact])
    else sender.skipTo(fact)
  }
}

/** Sends the next batch. True if there are more facts. */
const sendBatch = async (call: EventsCall, sender: Sender): Promise<boolean> => {
  const { facts, end, hasMore } = await readFacts(call, sender.place(), BATCH_MAX, call.tail.read)
  await sender.send(facts)
  sender.skipTo(end)
  return hasMore
}

/** The code of the problem that would refuse the reader now: an expired token, a revoked key or scope. */
const refusalOf = async ({ recheck }: EventsCall): Promise<string | undefined> => {
  try {
    await recheck()
    return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    // If the check itself could not be made, it is repeated later, since the caller was permitted a moment ago.
    return error.code === 'dependency_unavailable' ? undefined : error.code
  }
}

/** The code of the refusal that ends the stream, checked at most every few seconds; undefined without one. */
const createRecheck = (call: EventsCall): (() => Promise<string | undefined>) => {
  const { world } = call.ledger
  let checkedAtMs = world.monotonicMs()
  return async () => {
    if (world.monotonicMs() - checkedAtMs < RECHECK_EVERY_MS) return undefined
    checkedAtMs = world.monotonicMs()
    return refusalOf(call)
  }
}

const run = async (call: EventsCall, sender: Sender, queue: LiveQueue, signal: AbortSignal) => {
  const recheck = createRecheck(call)
  for (let isReading = true; !signal.aborted; ) {
    const refused = await recheck()
    if (refused) return refused
    if (isReading) isReading = await sendBatch(call, sender)
    else {
      const news = await queue.next(RECHECK_EVERY_MS, signal)
      if (news === 'behind') isReading = true
      else await sendNews(call, sender, news)
    }
    await sender.comment()
  }
  return undefined
}

/** Throws Problem before the stream begins, for an invalid cursor or a caller with too many streams. */
export const eventStream = async (call: EventsCall): Promise<Streamed> => {
  const from = startPlaceOf(call, call.lastEventId ?? call.query.cursor)
  call.onClose(await call.concurrencyLimits.take('streams', call.principal))
  return async (send, gone) => {
    const signal = AbortSignal.any([gone, call.stopping])
    await send(': the facts of this ledger\n\n')
    const queue = await call.tail.follow(call.principal.tenant)
    try {
      const refused = await run(call, createSender(call, from, send), queue, signal)
      if (refused) await send(`: ended: ${refused}\n\n`)
    } finally {
      queue.close()
    }
  }
}
