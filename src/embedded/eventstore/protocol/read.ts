import { type Log, entryFor, existence, mayBegin, readAll, readStream } from '../read.ts'
import { type StoredRecord, isMetastream, originalOf } from '../record.ts'
import { firstStreamPositionMessage, lastStreamPositionMessage, streamName, streamNotFoundMessage } from './messages.ts'
import { type Outlet, type ReadCall, openOutlet } from './backpressureWriter.ts'
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
    const outlet = openOutlet(call)
    void serve(log, call.request.getOptions(), outlet)
      .catch(
        (error: unknown): Failure =>
          error instanceof SyntaxError ? invalidArgument(error.message) : unavailable('none'),
      )
      .then(failure => outlet.end(failure))
  }

const serve = (log: Log, options: Options | undefined, outlet: Outlet): Promise<Failure | undefined> => {
  if (options?.hasStream() === true)
    return options.hasSubscription() ? subscribeToStream(log, options, outlet) : serveStream(log, options, outlet)
  if (options?.hasAll() === true)
    return options.hasSubscription() ? subscribeToAll(log, options, outlet) : serveAll(log, options, outlet)
  return Promise.resolve(invalidArgument('Either a stream or $all must be read.'))
}

const sendAll = async (
  pages: AsyncIterable<readonly StoredRecord[]>,
  encode: Encoder,
  outlet: Outlet,
): Promise<number> => {
  let sent = 0
  for await (const page of pages) {
    for (const record of page) {
      const room = outlet.sendSoon(encode(record))
      if (room !== undefined) await room
      if (outlet.gone.aborted) return sent
      sent += 1
    }
  }
  return sent
}

const serveStream = async (log: Log, options: Options, outlet: Outlet): Promise<Failure | undefined> => {
  const stream = streamName(options.getStream()?.getStreamIdentifier())
  const entry = await entryFor(log, stream)
  const found = (await isOfTombstoned(log, stream)) ? 'deleted' : existence(entry)
  if (found === 'deleted') return streamDeleted(stream)
  if (found === 'not_found') {
    await outlet.send(streamNotFoundMessage(stream))
    return undefined
  }
  const { head, truncation } = entry
  const direction = directionOf(options)
  const pages = readStream(log, entry, { stream, direction, from: revisionOf(options), count: countOf(options) })
  const sent = await sendAll(pages, encoderOf(log, options), outlet)
  if (!knowsPositions(options) || outlet.gone.aborted) return undefined
  if (sent === 0 && direction === 'forwards') await outlet.send(firstStreamPositionMessage(truncation.before))
  await outlet.send(lastStreamPositionMessage(head))
  return undefined
}

/** The metadata of a tombstoned stream is as gone as the stream itself. */
const isOfTombstoned = async (log: Log, stream: string): Promise<boolean> =>
  isMetastream(stream) && existence(await entryFor(log, originalOf(stream))) === 'deleted'

const serveAll = async (log: Log, options: Options, outlet: Outlet): Promise<Failure | undefined> => {
  const filter = filterIn(options)
  const from = positionOf(options)
  if (typeof from === 'bigint' && !(await mayBegin(log, from))) return readRefused()
  const pages = readAll(log, {
    direction: directionOf(options),
    from,
    count: countOf(options),
    ...(filter !== undefined && { filter }),
  })
  await sendAll(pages, encoderOf(log, options), outlet)
  return undefined
}
