import type { ResourceRow } from '../../projections/projection.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { type AnyEvent, isRejection, type Rejection } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import type { EventStore, World } from '../ports.ts'
import type { Entity } from './entities.ts'
import { eventIdOf } from './identifiers.ts'
import { createLoader, type Loaded, type Loader, nothingLoaded } from './loader.ts'
import { newEventOf } from './recorded.ts'

/** Who commands, why, and when. `commandId` names this attempt: its events' ids are made of it. */
export type Context = Omit<Metadata, 'schemaVersion' | 'causationId'> & {
  readonly commandId: string
  /** What caused the command; the command itself when it came from outside. */
  readonly causationId?: string
}

/** What commands work with. */
export type Ledger = {
  readonly store: EventStore
  readonly world: World
  readonly loader: Loader
  /** Runs work on one stream after the other: within a process nobody loses a race that a queue can prevent. */
  readonly inTurn: <T>(stream: string, work: () => Promise<T>) => Promise<T>
  /** Resolves when what is in turn on the stream now is done, however it ends. */
  readonly idle: (stream: string) => Promise<void>
}

export type Handled<S, R, Code extends string> =
  | (Loaded<S, R> & { readonly ok: true })
  | (Rejection<Code | 'concurrent_modification'> & { readonly ok: false })
  | { readonly ok: false; readonly stale: Loaded<S, R> }

export type Request<C, R> = {
  readonly command: C
  readonly context: Context
  /** The revision that the caller read: with it there is no second try. */
  readonly ifMatch?: ((row: R | undefined) => boolean) | undefined
  /** The stream most likely does not exist yet, so it is not read first. */
  readonly isNew?: boolean
}

/** Between processes the one who appends first wins; the others try again, a little later each time, but not for ever. */
const ATTEMPTS_MAX = 12
const BACKOFF_MS = 5
const BACKOFF_MAX_MS = 200

export const createLedger = (store: EventStore, world: World): Ledger => {
  const tails = new Map<string, Promise<unknown>>()
  const inTurn = <T>(stream: string, work: () => Promise<T>): Promise<T> => {
    const before = tails.get(stream) ?? Promise.resolve()
    const mine = before.then(work, work)
    tails.set(stream, mine)
    const leave = (): void => {
      if (tails.get(stream) === mine) tails.delete(stream)
    }
    mine.then(leave, leave)
    return mine
  }
  const done = (): void => undefined
  const idle = async (stream: string): Promise<void> => tails.get(stream)?.then(done, done)
  return { store, world, loader: createLoader(store), inTurn, idle }
}

const recordAll = <E extends AnyEvent>(
  events: readonly E[],
  id: string,
  context: Context,
  after: bigint,
): Recorded<E>[] => {
  const { commandId, causationId = commandId, ...metadata } = context
  return events.map((event, index) => {
    const revision = after + BigInt(index) + 1n
    const eventId = eventIdOf(commandId, id, revision)
    return { event, eventId, id, revision, position: 0n, metadata: { ...metadata, causationId, schemaVersion: 0 } }
  })
}

const pauseBefore = (attempt: number, world: World): Promise<void> => {
  const jitter = (world.randomBytes(1)[0] ?? 0) / 255
  return world.sleep(Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** attempt) * jitter)
}

/** What the command comes to on this state: the events to append, or an answer that needs none. */
const judge = <S, C, E extends AnyEvent, Code extends string, R extends ResourceRow>(
  { aggregate }: Entity<S, C, E, Code, R>,
  before: Loaded<S, R>,
  { command, ifMatch }: Request<C, R>,
): { readonly events: readonly E[] } | { readonly answer: Handled<S, R, Code> } => {
  if (ifMatch && !ifMatch(before.row)) return { answer: { ok: false, stale: before } }
  const decided = aggregate.decider.decide(command, before.state)
  if (isRejection(decided)) return { answer: { ok: false, ...decided } }
  return decided.length === 0 ? { answer: { ok: true, ...before } } : { events: decided }
}

/**
 * The only optimistic loop of the house: fold, decide, append at exactly the revision that was folded. Answers with the
 * stream as it is afterwards; a command that was already carried out appends nothing. Throws Unavailable when the store
 * does not answer.
 *
 * The first attempt trusts the state that this process saw last, since an append to a stream that has moved on is refused
 * by the store. An answer that appends nothing has no such check, so it is only ever given from what was just read.
 */
export const handle = <S, C, E extends AnyEvent, Code extends string, R extends ResourceRow>(
  ledger: Ledger,
  entity: Entity<S, C, E, Code, R>,
  id: Id<IdPrefix>,
  request: Request<C, R>,
): Promise<Handled<S, R, Code>> => {
  const { store, loader, world, inTurn } = ledger
  const { aggregate } = entity
  const stream = streamOf(aggregate, id)
  return inTurn(stream, async () => {
    let guess = request.isNew ? nothingLoaded(entity) : loader.lastSeen(entity, id)
    for (let attempt = 1; ; attempt++) {
      const guessed = guess !== undefined
      const before = guess ?? (await loader.load(entity, id))
      guess = undefined
      const judged = judge(entity, before, request)
      if ('answer' in judged) {
        if (guessed) continue
        return judged.answer
      }
      const after = before.revision === 'no_stream' ? -1n : before.revision
      const events = recordAll(judged.events, id, request.context, after)
      const encoded = events.map(recorded => newEventOf(aggregate.codec, recorded))
      const appended = await store.append(stream, encoded, before.revision)
      if (appended.ok) {
        const { position } = appended
        const placed = events.map(event => ({ ...event, position }))
        return { ok: true, ...loader.advance(entity, before, placed) }
      }
      if (request.ifMatch) return { ok: false, stale: await loader.load(entity, id) }
      if (attempt === ATTEMPTS_MAX) return { ok: false, rejected: 'concurrent_modification' }
      if (!guessed) await pauseBefore(attempt, world)
    }
  })
}
