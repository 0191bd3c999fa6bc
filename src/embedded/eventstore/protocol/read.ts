import { type Log, type StreamRead, entryFor, existence, mayBegin, readAll, readStream } from '../read.ts'
import { type StoredRecord, isMetastream, originalOf } from '../record.ts'
import type { StreamEntry } from '../streams.ts'
import { firstVisible } from '../truncation.ts'
import { firstStreamPositionMessage, lastStreamPositionMessage, streamName, streamNotFoundMessage } from './messages.ts'
import { type BackpressureWriter, type ReadCall, openBackpressureWriter } from './backpressureWriter.ts'
import {
  type Encoder,
  type Options,
  countOf,
  directionOf,
  filterIn,
  encoderOf,
  knowsPositions,
  positionOf,
  revisionOf,
} from './readOptions.ts'
import { type Failure, invalidArgument, readRefused, streamDeleted, unavailable } from './status.ts'
import { subscribeToAll, subscribeToStream } from './subscribe.ts'

/** The real server's page size. */
const PAGE_EVENTS = 32

/** `Read`: pages of a stream or of `$all`, or a subscription to either. */
export const read =
  (logger: Log) =>
  (call: ReadCall): void => {
    const writer = openBackpressureWriter(call)
    void serve(logger, call.request.getOptions(), writer)
      .catch(
        (error: unknown): Failure =>
          error instanceof SyntaxError ? invalidArgument(error.message) : unavailable('none'),
      )
      .then(failure => writer.end(failure))
  }

const serve = (logger: Log, options: Options | undefined, writer: BackpressureWriter): Promise<Failure | undefined> => {
  if (options?.hasStream() === true)
    return options.hasSubscription() ? subscribeToStream(logger, options, writer) : serveStream(logger, options, writer)
  if (options?.hasAll() === true)
    return options.hasSubscription() ? subscribeToAll(logger, options, writer) : serveAll(logger, options, writer)
  return Promise.resolve(invalidArgument('Either a stream or $all must be read.'))
}

const sendAll = async (
  pages: AsyncIterable<readonly StoredRecord[]>,
  encode: Encoder,
  writer: BackpressureWriter,
): Promise<void> => {
  for await (const page of pages) {
    for (const record of page) {
      await writer.send(await encode(record))
      if (writer.gone.aborted) return
    }
  }
}

const serveStream = async (logger: Log, options: Options, writer: BackpressureWriter): Promise<Failure | undefined> => {
  const stream = streamName(options.getStream()?.getStreamIdentifier())
  const entry = await entryFor(logger, stream)
  const status = (await isOfTombstoned(logger, stream)) ? 'deleted' : existence(entry)
  if (status === 'deleted') return streamDeleted(stream)
  if (status === 'not_found') {
    await writer.send(streamNotFoundMessage(stream))
    return undefined
  }
  const range = { stream, direction: directionOf(options), from: revisionOf(options), count: countOf(options) }
  const first = knowsPositions(options) ? firstPosition(entry, range) : undefined
  if (first !== undefined) await writer.send(firstStreamPositionMessage(first))
  await sendAll(readStream(logger, entry, range), encoderOf(logger, options), writer)
  if (knowsPositions(options) && !writer.gone.aborted) await writer.send(lastStreamPositionMessage(entry.head))
  return undefined
}

/** The first revision there is to read, which the real server names if the first page of a forwards read is empty. */
const firstPosition = ({ head, truncation }: StreamEntry, { direction, from, count }: StreamRead) => {
  if (direction === 'backwards' || from === 'end') return undefined
  const start = from === 'start' ? 0n : from
  const visible = firstVisible(truncation, head)
  const end = start + BigInt(Math.min(count, PAGE_EVENTS))
  const first = end <= visible ? visible : start > head || visible > head ? head + 1n : undefined
  return first === start ? undefined : first
}

/** The metadata of a tombstoned stream is as inaccessible as the stream itself. */
const isOfTombstoned = async (logger: Log, stream: string): Promise<boolean> =>
  isMetastream(stream) && existence(await entryFor(logger, originalOf(stream))) === 'deleted'

const serveAll = async (logger: Log, options: Options, writer: BackpressureWriter): Promise<Failure | undefined> => {
  const filter = filterIn(options)
  const from = positionOf(options)
  if (typeof from === 'bigint' && !(await mayBegin(logger, from))) return readRefused()
  const pages = readAll(logger, {
    direction: directionOf(options),
    from,
    count: countOf(options),
    ...(filter !== undefined && { filter }),
  })
  await sendAll(pages, encoderOf(logger, options), writer)
  return undefined
}
