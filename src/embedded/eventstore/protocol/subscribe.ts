import { randomUUID } from 'node:crypto'
import { type Log, allPage, entryFor, existence, mayBegin, nextLimit } from '../read.ts'
import { NO_REVISION, type StoredRecord } from '../record.ts'
import { firstVisible, isExpired } from '../truncation.ts'
import { caughtUpMessage, checkpointMessage, confirmationMessage, streamName } from './messages.ts'
import type { Outlet } from './backpressureWriter.ts'
import { type Options, encoderOf, filterIn, positionOf, revisionOf } from './readOptions.ts'
import { type Failure, streamDeleted, subscriptionRefused } from './status.ts'

const FIRST_PAGE_EVENTS = 64
/** What the real server searches between two checkpoints when the client does not say. */
const SEARCH_WINDOW_EVENTS = 32

/**
 * A subscription to `$all` is one loop: whatever lies behind the last position is sent, from memory or from Postgres,
 * and when nothing does, it waits for the head to move. Catching up and being live differ only in where the pages come
 * from, so between them no event can be lost or sent twice.
 */
export const subscribeToAll = async (log: Log, options: Options, outlet: Outlet): Promise<Failure | undefined> => {
  const encode = encoderOf(log, options)
  const filter = filterIn(options)
  const asked = positionOf(options)
  if (typeof asked === 'bigint' && !(await mayBegin(log, asked))) return subscriptionRefused()
  let position = asked === 'start' ? 0n : asked === 'end' ? log.tail.head() : asked
  const interval = checkpointIntervalOf(options)
  let sinceCheckpoint = 0
  let checkpointDue = false

  const checkpoint = (): Promise<void> | undefined => {
    sinceCheckpoint = 0
    checkpointDue = false
    return outlet.send(checkpointMessage(position))
  }
  const deliver = (record: StoredRecord): Promise<void> | undefined => {
    position = record.position
    sinceCheckpoint += 1
    const wanted = filter === undefined || filter(record)
    checkpointDue = !wanted
    const room = wanted ? outlet.sendSoon(encode(record)) : undefined
    if (filter === undefined || sinceCheckpoint < interval) return room
    return room === undefined ? checkpoint() : room.then(checkpoint)
  }

  await outlet.send(confirmationMessage(randomUUID()))
  let limit = FIRST_PAGE_EVENTS
  let ahead: ReturnType<typeof allPage> | undefined
  for (let live = false; !outlet.gone.aborted; ) {
    const page = await (ahead ?? allPage(log, 'forwards', position, limit))
    const last = page.at(-1)
    if (last !== undefined) limit = Math.max(nextLimit(page), FIRST_PAGE_EVENTS)
    // The next page is on its way while this one is delivered; should the reader leave, nobody asks what became of it.
    ahead = last && last.position < log.tail.head() ? allPage(log, 'forwards', last.position, limit) : undefined
    ahead?.catch(() => undefined)
    for (const record of page) {
      if (outlet.gone.aborted) return undefined
      const room = deliver(record)
      if (room !== undefined) await room
    }
    if (position < log.tail.head()) continue
    // An idle log must not keep a reader behind its head only because the last events were not for it.
    if (checkpointDue) await checkpoint()
    if (!live) await outlet.send(caughtUpMessage())
    live = true
    await log.tail.beyond(position, outlet.gone)
  }
  return undefined
}

const checkpointIntervalOf = (options: Options): number => {
  const filter = options.getFilter()
  const window = filter?.hasMax() === true ? filter.getMax() : SEARCH_WINDOW_EVENTS
  return Math.max(window * (filter?.getCheckpointintervalmultiplier() ?? 1), 1)
}

/** The same for one stream, which need not exist yet. */
export const subscribeToStream = async (log: Log, options: Options, outlet: Outlet): Promise<Failure | undefined> => {
  const encode = encoderOf(log, options)
  const stream = streamName(options.getStream()?.getStreamIdentifier())
  const asked = revisionOf(options)
  const entry = await entryFor(log, stream)
  if (asked !== 'end' && existence(entry) === 'deleted') return streamDeleted(stream)
  let revision = asked === 'start' ? NO_REVISION : asked === 'end' ? entry.head : asked

  await outlet.send(confirmationMessage(randomUUID()))
  for (let live = false; !outlet.gone.aborted; ) {
    const asOf = log.tail.head()
    for await (const record of visibleBehind(log, stream, revision)) {
      revision = record.revision
      const room = outlet.sendSoon(encode(record))
      if (room !== undefined) await room
      if (outlet.gone.aborted) return undefined
    }
    const now = await entryFor(log, stream)
    if (now.head > revision && existence(now) === 'deleted') return streamDeleted(stream)
    // Nothing is caught up with before there is a stream, unless only its future was asked for.
    const isThere = asked === 'end' || existence(now) === 'found'
    if (!live && isThere) await outlet.send(caughtUpMessage())
    live ||= isThere
    await log.tail.beyond(asOf, outlet.gone)
  }
  return undefined
}

async function* visibleBehind(log: Log, stream: string, revision: bigint): AsyncGenerator<StoredRecord> {
  const entry = await entryFor(log, stream)
  if (existence(entry) !== 'found') return
  const { truncation, head } = entry
  const first = firstVisible(truncation, head)
  for (let from = revision + 1n > first ? revision + 1n : first; from <= head; ) {
    const recent = entry.recent[0] !== undefined && from >= entry.recent[0].revision
    const page = recent
      ? entry.recent.filter(record => record.revision >= from)
      : await log.reader.streamPage({ stream, direction: 'forwards', from, to: head, limit: FIRST_PAGE_EVENTS })
    const last = page.at(-1)
    if (last === undefined) return
    for (const record of page) if (!isExpired(record, truncation, Date.now())) yield record
    from = last.revision + 1n
  }
}
