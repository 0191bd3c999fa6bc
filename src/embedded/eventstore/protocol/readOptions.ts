import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import { type Filter, filterOf } from '../filter.ts'
import { type Log, readOne } from '../read.ts'
import type { StoredRecord } from '../record.ts'
import type { Direction } from '../storage.ts'
import type { UuidForm } from '../../../grpc/uuid.ts'
import { eventMessage, linkMessage } from './messages.ts'

export type Options = ReadReq.Options

export const formOf = (options: Options): UuidForm =>
  options.getUuidOption()?.hasString() === true ? 'string' : 'structured'

const LINK_TYPE = '$>'
const TARGET = /^(-1|\d{1,19})@(.+)$/s

/** The event of a link (`revision@stream`), if the reader may see it. Links to links are resolved one step. */
const targetOf = async (logger: Log, link: StoredRecord): Promise<StoredRecord | undefined> => {
  const [, revision, stream] = TARGET.exec(link.data.toString('utf8')) ?? []
  return revision === undefined || stream === undefined ? undefined : readOne(logger, stream, BigInt(revision))
}

/** Encodes an event for this reader. Links are resolved on request, which may need a read of the log. */
export type Encoder = (record: StoredRecord) => ReadResp | Promise<ReadResp>

export const encoderOf = (logger: Log, options: Options): Encoder => {
  const form = formOf(options)
  if (!options.getResolveLinks()) return record => eventMessage(record, form)
  const resolved = async (link: StoredRecord): Promise<ReadResp> =>
    linkMessage({ event: await targetOf(logger, link), link }, form)
  return record => (record.type === LINK_TYPE ? resolved(record) : eventMessage(record, form))
}

export const directionOf = (options: Options): Direction =>
  options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS ? 'backwards' : 'forwards'

export const countOf = (options: Options): number => Math.min(Number(options.getCount()), Number.MAX_SAFE_INTEGER)

/** The requested revision; `start` by default. */
export const revisionOf = (options: Options): bigint | 'start' | 'end' => {
  const stream = options.getStream()
  if (stream?.hasRevision() === true) return BigInt(stream.getRevision())
  return stream?.hasEnd() === true ? 'end' : 'start'
}

/** The requested commit position; prepare and commit positions are equal here. */
export const positionOf = (options: Options): bigint | 'start' | 'end' => {
  const all = options.getAll()
  const position = all?.getPosition()
  if (position !== undefined) return BigInt(position.getCommitPosition())
  return all?.hasEnd() === true ? 'end' : 'start'
}

export const filterIn = (options: Options): Filter | undefined => {
  const filter = options.getFilter()
  const byStream = filter?.getStreamIdentifier()
  const expression = byStream ?? filter?.getEventType()
  if (expression === undefined) return undefined
  const on = byStream === undefined ? 'type' : 'stream'
  return filterOf({ on, regex: expression.getRegex(), prefixes: expression.getPrefixList() })
}

/** Only clients with this option understand the messages about the first and last position of a stream. */
export const knowsPositions = (options: Options): boolean => (options.getControlOption()?.getCompatibility() ?? 0) >= 1
