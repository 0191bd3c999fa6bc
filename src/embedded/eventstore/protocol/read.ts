import { type Log, entryFor, existence, mayBegin, readAll, readStream } from '../read.ts'
import { type StoredRecord, isMetastream, originalOf } from '../record.ts'
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

/** `Read`: pages of a stream or of `$all`, or a subscription to either. */
export const read =
  (log: Log) =>
  (call: ReadCall): void => {
    const writer = openBackpressureWriter(call)
    void serve(log, call.request.getOptions(), writer)
      .catch(
        (error: unknown): Failure =>
          error instanceof SyntaxError ? invalidArgument(error.message) : unavailable('none'),
      )
      .then(failure => writer.end(failure))
  }

const serve = (log: Log, options: Options | undefined, writer: BackpressureWriter): Promise<Failure | undefined> => {
  if (options?.hasStream() === true)
    return options.hasSubscription() ? subscribeToStream(log, options, writer) : serveStream(log, options, writer)
  if (options?.hasAll() === true)
    return options.hasSubscription() ? subscribeToAll(log, options, writer) : serveAll(log, options, writer)
  return Promise.resolve(invalidArgument('Either a stream or $all must be read.'))
}

const sendAll = async (
  pages: AsyncIterable<readonly StoredRecord[]>,
  encode: Encoder,
  writer: BackpressureWriter,
): Promise<number> => {
  let sent = 0
  for await (const page of pages) {
    for (const record of page) {
      const room = writer.sendSoon(encode(record))
      if (room !== undefined) await room
      if (writer.gone.aborted) return sent
      sent += 1
    }
  }
  return sent
}

const serveStream = async (log: Log, options: Options, writer: BackpressureWriter): Promise<Failure | undefined> => {
  const stream = streamName(options.getStream()?.getStreamIdentifier())
  const entry = await entryFor(log, stream)
  const found = (await isOfTombstoned(log, stream)) ? 'deleted' : existence(entry)
  if (found === 'deleted') return streamDeleted(stream)
  if (found === 'not_found') {
    await writer.send(streamNotFoundMessage(stream))
    return undefined
  }
  const { head, truncation } = entry
  const direction = directionOf(options)
  const pages = readStream(log, entry, { stream, direction, from: revisionOf(options), count: countOf(options) })
  const sent = await sendAll(pages, encoderOf(log, options), writer)
  if (!knowsPositions(options) || writer.gone.aborted) return undefined
  if (sent === 0 && direction === 'forwards') await writer.send(firstStreamPositionMessage(truncation.before))
  await writer.send(lastStreamPositionMessage(head))
  return undefined
}

/** The metadata of a tombstoned stream is as inaccessible as the stream itself. */
const isOfTombstoned = async (log: Log, stream: string): Promise<boolean> =>
  isMetastream(stream) && existence(await entryFor(log, originalOf(stream))) === 'deleted'

const serveAll = async (log: Log, options: Options, writer: BackpressureWriter): Promise<Failure | undefined> => {
  const filter = filterIn(options)
  const from = positionOf(options)
  if (typeof from === 'bigint' && !(await mayBegin(log, from))) return readRefused()
  const pages = readAll(log, {
    direction: directionOf(options),
    from,
    count: countOf(options),
    ...(filter !== undefined && { filter }),
  })
  await sendAll(pages, encoderOf(log, options), writer)
  return undefined
}
