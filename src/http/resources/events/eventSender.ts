import { type FeedPlace, isAfter } from '../../../../projections/facts/queries.ts'
import { withSchemaBaseUrl } from '../../../../streams/facts.ts'
import type { SharedFact } from '../../reading/caughtUpStreams.ts'
import { bindingOf, type EventsCall, type FactRow, cursorAt, typesFor } from './readFacts.ts'

/** The output of one event stream: facts and comments, and the places that follow from them. */

const COMMENT_EVERY_MS = 15_000
/** The size from which no further fact is added to a piece: less than a millisecond of work. */
const PIECE_BYTES = 16 * 1024

/** A fact of the history, or one of the tail with the frames that its streams share. */
export type Sendable = FactRow & Partial<Pick<SharedFact, 'frames' | 'type' | 'subject'>>

const frameOf = (call: EventsCall, fact: FactRow): Buffer => {
  const data = JSON.stringify(withSchemaBaseUrl(fact.event, call.schemaBaseUrl))
  return Buffer.from(`id: ${cursorAt(call, fact)}\nevent: ${fact.event.type}\ndata: ${data}\n\n`)
}

/** The frames of a tenant's facts, which all its streams with the same filters and version share. */
const createFrames = (call: EventsCall): ((fact: Sendable) => Buffer) => {
  const key = JSON.stringify([call.apiVersion, bindingOf(call)])
  return fact => {
    const frame = fact.frames?.get(key) ?? frameOf(call, fact)
    fact.frames?.set(key, frame)
    return frame
  }
}

/** Whether a fact of the tail passes the filters; the database has applied them to those of the history. */
const createFilter = (call: EventsCall): ((fact: Sendable) => boolean) => {
  const { subject, from_time } = call.query
  const types = typesFor(call)
  const fromMs = from_time === undefined ? undefined : Date.parse(from_time)
  return fact =>
    fact.frames === undefined ||
    ((types === undefined || types.includes(fact.event.type)) &&
      (subject === undefined || fact.subject === subject) &&
      (fromMs === undefined || Date.parse(fact.event.time) >= fromMs))
}

export type Sender = ReturnType<typeof createSender>

/** Tracks the place of the stream and that of its reader. Long because its functions share these places. */
export const createSender = (call: EventsCall, from: FeedPlace, send: (chunk: Buffer) => Promise<void>) => {
  const { world } = call.ledger
  const frame = createFrames(call)
  const isWanted = createFilter(call)
  let place = from
  let readerPlace = from
  let quietSinceMs = world.monotonicMs()

  const skipTo = (to: FeedPlace): void => {
    if (isAfter(to, place)) place = to
  }
  /** An id without data is no event, but advances Last-Event-ID past facts that the filters exclude. */
  const comment = (): Buffer => {
    const id = isAfter(place, readerPlace) ? `id: ${cursorAt(call, place)}\n` : ''
    return Buffer.from(`: still here\n${id}\n`)
  }
  const commentWaitMs = (): number => COMMENT_EVERY_MS - (world.monotonicMs() - quietSinceMs)

  return {
    place: () => place,
    skipTo,
    /** How long the stream may remain quiet. */
    commentWaitMs,
    /** Sends as many facts as one piece has, or a comment after a quiet time. Resolves to the facts that remain. */
    sendPiece: async (facts: readonly Sendable[]): Promise<readonly Sendable[]> => {
      const frames: Buffer[] = []
      let bytes = 0
      let index = 0
      for (; index < facts.length && bytes < PIECE_BYTES; index += 1) {
        const fact = facts[index] as Sendable
        if (!isAfter(fact, place)) continue
        place = fact
        if (!isWanted(fact)) continue
        bytes += frames[frames.push(frame(fact)) - 1]?.length ?? 0
      }
      if (frames.length === 0 && commentWaitMs() <= 0) frames.push(comment())
      const [first, ...others] = frames
      if (first !== undefined) {
        readerPlace = place
        quietSinceMs = world.monotonicMs()
        await send(others.length === 0 ? first : Buffer.concat(frames))
      }
      return facts.slice(index)
    },
  }
}
