import type { Account } from '../../../fairness/account.ts'
import { TurnRefused } from '../../../fairness/turns.ts'
import { jittered } from '../../../lib/time.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { callerOf } from '../../../identity/principal.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import type { Streamed } from '../../route.ts'
import type { LiveQueue } from '../../reading/caughtUpStreams.ts'
import { createSender, type Sendable, type Sender } from './eventSender.ts'
import { type EventsCall, readFacts, requireInLog, startPlaceOf } from './readFacts.ts'

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
 *
 * All that a stream does between two waits is done in turns of its tenant, a small piece at a time.
 */

const BATCH_MAX = 100
/** The interval at which the reader's permission is checked again. */
const RECHECK_EVERY_MS = 5_000

type Stream = {
  readonly call: EventsCall
  readonly account: Account
  readonly sender: Sender
  readonly queue: LiveQueue
  readonly signal: AbortSignal
}

/** Sends facts in as many pieces as they need. */
const sendAll = async ({ call, account, sender, signal }: Stream, facts: readonly Sendable[]): Promise<void> => {
  for (let rest = facts; rest.length > 0; )
    rest = (await call.tail.inTurn(account, () => sender.sendPiece(rest), signal)) ?? []
}

/** Sends the next batch. True if there are more facts. */
const sendBatch = async (stream: Stream): Promise<boolean> => {
  const { call, account, sender, signal } = stream
  const { facts, end, hasMore } = await readFacts(call, sender.place(), BATCH_MAX, query =>
    call.tail.read(query, stream),
  )
  await sendAll(stream, facts)
  if (!signal.aborted) sender.skipTo(end)
  if (sender.commentWaitMs() <= 0) await call.tail.inTurn(account, () => sender.sendPiece([]), signal)
  return hasMore
}

/** Waits for news, and sends it. True if the stream fell behind. */
const sendNews = async (stream: Stream, waitMs: number): Promise<boolean> => {
  const { sender, queue, signal } = stream
  const rest = await queue.next<readonly Sendable[] | 'behind'>({ waitMs, signal }, news =>
    news === 'behind' ? news : sender.sendPiece(news),
  )
  if (rest === 'behind') return true
  await sendAll(stream, rest ?? [])
  return false
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

/** The refusal that ends the stream, checked at most every few seconds; undefined without one. */
const createRecheck = ({ call, account, signal }: Omit<Stream, 'sender' | 'queue'>) => {
  const { world } = call.ledger
  let dueMs = world.monotonicMs() + RECHECK_EVERY_MS
  return {
    waitMs: () => dueMs - world.monotonicMs(),
    refusal: async (): Promise<string | undefined> => {
      if (world.monotonicMs() < dueMs) return undefined
      dueMs = world.monotonicMs() + RECHECK_EVERY_MS
      return call.tail.inTurn(account, () => refusalOf(call), signal)
    },
  }
}

/** Resolves to the code of the refusal that ended the stream, or to undefined when the signal aborts. */
const run = async (stream: Stream): Promise<string | undefined> => {
  const { sender, signal } = stream
  const recheck = createRecheck(stream)
  for (let isReading = true; !signal.aborted; ) {
    const refused = await recheck.refusal()
    if (refused) return refused
    const waitMs = Math.max(0, Math.min(recheck.waitMs(), sender.commentWaitMs()))
    isReading = isReading ? await sendBatch(stream) : await sendNews(stream, waitMs)
  }
  return undefined
}

const COME_BACK_WITHIN_MS = 2_000

/** Tells the client when to open the stream again, elsewhere: not all at once. */
const comeBack = ({ ledger: { world } }: EventsCall): string => {
  const random = (world.randomBytes(1)[0] ?? 0) / 255
  return `: ended: shutting_down\nretry: ${Math.round(jittered(COME_BACK_WITHIN_MS, random))}\n\n`
}

/** Throws Problem before the stream begins, for an invalid cursor or a caller or tenant with too many streams. */
export const eventStream = async (call: EventsCall): Promise<Streamed> => {
  const cursor = call.lastEventId ?? call.query.cursor
  const from = startPlaceOf(call, cursor)
  call.onClose(await call.concurrencyLimits.take('streams', call.principal))
  if (cursor !== undefined) await requireInLog(call, from, await positionOf(call.database.sql, 'facts_v1'))
  const account = { tenant: call.principal.tenant, caller: callerOf(call.principal) }
  return async (send, gone) => {
    const signal = AbortSignal.any([gone, call.stopping])
    await send(': the facts of this ledger\n\n')
    const queue = await call.tail.follow(account)
    try {
      const refused = await run({ call, account, sender: createSender(call, from, send), queue, signal })
      if (refused) await send(`: ended: ${refused}\n\n`)
      else if (call.stopping.aborted && !gone.aborted) await send(comeBack(call))
    } catch (error) {
      // The client left while the stream waited for its turn to read.
      if (!(error instanceof TurnRefused)) throw error
    } finally {
      queue.close()
    }
  }
}
