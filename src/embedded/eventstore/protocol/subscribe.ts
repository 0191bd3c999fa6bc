import { randomUUID } from 'node:crypto'
import { type Log, allPage, entryFor, existence, mayBegin, nextLimit } from '../read.ts'
import { NO_REVISION, type StoredRecord } from '../record.ts'
import { firstVisible, isExpired } from '../truncation.ts'
import { caughtUpMessage, checkpointMessage, confirmationMessage, streamName } from './messages.ts'
import type { BackpressureWriter } from './backpressureWriter.ts'
import { type Options, encoderOf, filterIn, positionOf, revisionOf } from './readOptions.ts'
import { type Failure, streamDeleted, subscriptionRefused } from './status.ts'

const FIRST_PAGE_EVENTS = 64
/** The real server's default number of events between two checkpoints. */
const SEARCH_WINDOW_EVENTS = 32

/**
 * One loop: events after the last position are sent, from memory or Postgres, then it waits for the head to move. So
 * none is lost or sent twice. Long because its steps share its position and its checkpoint.
 */
export const subscribeToAll = async (
  logger: Log,
  options: Options,
  writer: BackpressureWriter,
): Promise<Failure | undefined> => {
  const encode = encoderOf(logger, options)
  const filter = filterIn(options)
  const start = positionOf(options)
  if (typeof start === 'bigint' && !(await mayBegin(logger, start))) return subscriptionRefused()
  let position = start === 'start' ? 0n : start === 'end' ? logger.tail.head() : start
  const interval = checkpointIntervalOf(options)
  let sinceCheckpoint = 0
  let checkpointDue = false

  const checkpoint = async (): Promise<void> => {
    sinceCheckpoint = 0
    checkpointDue = false
    await writer.send(checkpointMessage(position))
  }
  const deliver = async (record: StoredRecord): Promise<void> => {
    position = record.position
    sinceCheckpoint += 1
    const matches = filter === undefined || filter(record)
    checkpointDue = !matches
    if (matches) await writer.send(await encode(record))
    if (filter !== undefined && sinceCheckpoint >= interval) await checkpoint()
  }

  await writer.send(confirmationMessage(randomUUID()))
  let limit = FIRST_PAGE_EVENTS
  let ahead: ReturnType<typeof allPage> | undefined
  for (let live = false; !writer.gone.aborted; ) {
    const page = await (ahead ?? allPage(logger, 'forwards', position, limit))
    const last = page.at(-1)
    if (last !== undefined) limit = Math.max(nextLimit(page), FIRST_PAGE_EVENTS)
    // The next page is read while this one is delivered. If the reader leaves, its rejection is ignored.
    ahead = last && last.position < logger.tail.head() ? allPage(logger, 'forwards', last.position, limit) : undefined
    ahead?.catch(() => undefined)
    for (const record of page) {
      if (writer.gone.aborted) return undefined
      await deliver(record)
    }
    if (position < logger.tail.head()) continue
    // A checkpoint at the head of an idle log, whose last events the filter may have excluded.
    if (checkpointDue) await checkpoint()
    if (!live) await writer.send(caughtUpMessage())
    live = true
    await logger.tail.untilAfter(position, writer.gone)
  }
  return undefined
}

const checkpointIntervalOf = (options: Options): number => {
  const filter = options.getFilter()
  const window = filter?.hasMax() === true ? filter.getMax() : SEARCH_WINDOW_EVENTS
  return Math.max(window * (filter?.getCheckpointintervalmultiplier() ?? 1), 1)
}

/** The same for one stream, which need not exist yet. */
export const subscribeToStream = async (
  logger: Log,
  options: Options,
  writer: BackpressureWriter,
): Promise<Failure | undefined> => {
  const encode = encoderOf(logger, options)
  const stream = streamName(options.getStream()?.getStreamIdentifier())
  const start = revisionOf(options)
  const entry = await entryFor(logger, stream)
  if (start !== 'end' && existence(entry) === 'deleted') return streamDeleted(stream)
  let revision = start === 'start' ? NO_REVISION : start === 'end' ? entry.head : start

  await writer.send(confirmationMessage(randomUUID()))
  for (let live = false; !writer.gone.aborted; ) {
    const asOf = logger.tail.head()
    for await (const record of visibleAfter(logger, stream, revision)) {
      revision = record.revision
      await writer.send(await encode(record))
      if (writer.gone.aborted) return undefined
    }
    const now = await entryFor(logger, stream)
    if (now.head > revision && existence(now) === 'deleted') return streamDeleted(stream)
    // Without a stream there is no CaughtUp message, unless the read starts at the end.
    const isThere = start === 'end' || existence(now) === 'found'
    if (!live && isThere) await writer.send(caughtUpMessage())
    live ||= isThere
    await logger.tail.untilAfter(asOf, writer.gone)
  }
  return undefined
}

async function* visibleAfter(logger: Log, stream: string, revision: bigint): AsyncGenerator<StoredRecord> {
  const entry = await entryFor(logger, stream)
  if (existence(entry) !== 'found') return
  const { truncation, head } = entry
  const first = firstVisible(truncation, head)
  for (let from = revision + 1n > first ? revision + 1n : first; from <= head; ) {
    const recent = entry.recent[0] !== undefined && from >= entry.recent[0].revision
    const page = recent
      ? entry.recent.filter(record => record.revision >= from)
      : await logger.reader.streamPage({ stream, direction: 'forwards', from, to: head, limit: FIRST_PAGE_EVENTS })
    const last = page.at(-1)
    if (last === undefined) return
    for (const record of page) if (!isExpired(record, truncation, Date.now())) yield record
    from = last.revision + 1n
  }
}
