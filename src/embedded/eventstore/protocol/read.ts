import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { type Filter, filterOf } from '../filter.ts'
import { type Log, entryFor, existence, readAll, readStream } from '../read.ts'
import type { StoredRecord } from '../record.ts'
import type { Direction } from '../storage.ts'
import { type UuidForm, eventMessage, firstStreamPositionMessage } from './messages.ts'
import { lastStreamPositionMessage, streamName, streamNotFoundMessage } from './messages.ts'
import { type Outlet, type ReadCall, openOutlet } from './outlet.ts'
import { type Failure, invalidArgument, streamDeleted, unavailable } from './status.ts'
import { subscribeToAll, subscribeToStream } from './subscribe.ts'

export type Options = ReadReq.Options

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
      .then(failure => {
        if (outlet.gone.aborted) return
        if (failure === undefined) call.end()
        else call.emit('error', failure)
      })
  }

const serve = (log: Log, options: Options | undefined, outlet: Outlet): Promise<Failure | undefined> => {
  if (options?.hasStream() === true)
    return options.hasSubscription() ? subscribeToStream(log, options, outlet) : serveStream(log, options, outlet)
  if (options?.hasAll() === true)
    return options.hasSubscription() ? subscribeToAll(log, options, outlet) : serveAll(log, options, outlet)
  return Promise.resolve(invalidArgument('Either a stream or $all must be read.'))
}

export const formOf = (options: Options): UuidForm =>
  options.getUuidOption()?.hasString() === true ? 'string' : 'structured'

const directionOf = (options: Options): Direction =>
  options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS ? 'backwards' : 'forwards'

const countOf = (options: Options): number => Math.min(Number(options.getCount()), Number.MAX_SAFE_INTEGER)

/** The revision asked for; `start` when nothing was said. */
export const revisionOf = (options: Options): bigint | 'start' | 'end' => {
  const asked = options.getStream()
  if (asked?.hasRevision() === true) return BigInt(asked.getRevision())
  return asked?.hasEnd() === true ? 'end' : 'start'
}

/** The commit position asked for; prepare and commit positions are the same here. */
export const positionOf = (options: Options): bigint | 'start' | 'end' => {
  const asked = options.getAll()
  const position = asked?.getPosition()
  if (position !== undefined) return BigInt(position.getCommitPosition())
  return asked?.hasEnd() === true ? 'end' : 'start'
}

export const filterIn = (options: Options): Filter | undefined => {
  const asked = options.getFilter()
  const byStream = asked?.getStreamIdentifier()
  const expression = byStream ?? asked?.getEventType()
  if (expression === undefined) return undefined
  const on = byStream === undefined ? 'type' : 'stream'
  return filterOf({ on, regex: expression.getRegex(), prefixes: expression.getPrefixList() })
}

const sendAll = async (
  pages: AsyncIterable<readonly StoredRecord[]>,
  form: UuidForm,
  outlet: Outlet,
): Promise<number> => {
  let sent = 0
  for await (const page of pages) {
    for (const record of page) {
      const room = outlet.send(eventMessage(record, form))
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
  const found = existence(entry)
  if (found === 'deleted') return streamDeleted(stream)
  if (found === 'not_found') {
    await outlet.send(streamNotFoundMessage(stream))
    return undefined
  }
  const { head, truncation } = entry
  const direction = directionOf(options)
  const pages = readStream(log, entry, { stream, direction, from: revisionOf(options), count: countOf(options) })
  const sent = await sendAll(pages, formOf(options), outlet)
  if (!knowsPositions(options) || outlet.gone.aborted) return undefined
  if (sent === 0 && direction === 'forwards') await outlet.send(firstStreamPositionMessage(truncation.before))
  await outlet.send(lastStreamPositionMessage(head))
  return undefined
}

/** Only clients that say so understand the messages about the first and last position of a stream. */
const knowsPositions = (options: Options): boolean => (options.getControlOption()?.getCompatibility() ?? 0) >= 1

const serveAll = async (log: Log, options: Options, outlet: Outlet): Promise<Failure | undefined> => {
  const filter = filterIn(options)
  const pages = readAll(log, {
    direction: directionOf(options),
    from: positionOf(options),
    count: countOf(options),
    ...(filter !== undefined && { filter }),
  })
  await sendAll(pages, formOf(options), outlet)
  return undefined
}
