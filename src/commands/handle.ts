import { streamOf } from '../../streams/aggregate.ts'
import { type AnyEvent, isRejection, type Rejection } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import { type EventStore, Unavailable, type World } from '../ports.ts'
import type { Entity, Kind } from './entities.ts'
import { eventIdOf } from './identifiers.ts'
import { createIdSecret } from './idSecret.ts'
import {
  createAggregateRepository,
  type Loaded,
  type AggregateRepository,
  nothingLoaded,
} from './aggregateRepository.ts'
import { newEventOf } from './recorded.ts'

/** Who commands, why, and when. `commandId` names this attempt: its events' ids are made of it. */
export type Context = Omit<Metadata, 'schemaVersion' | 'causationId'> & {
  readonly commandId: string
  /** What caused the command; the command itself when it came from outside. */
  readonly causationId?: string
}

/** The parts that commands use. */
export type Ledger = {
  readonly store: EventStore
  readonly world: World
  readonly aggregates: AggregateRepository
  /** Called as soon as a part of the command is known to be durable; see effect.ts. */
  readonly noteEffect: () => void
  /** The secret of the ids that are made of idempotency keys. Throws IdSecretLost, and Unavailable with no effect. */
  readonly idSecret: () => Promise<Uint8Array>
  /** Runs work on one stream after the other, so that within a process no race is lost that a queue can prevent. */
  readonly inTurn: <T>(stream: string, work: () => Promise<T>) => Promise<T>
  /** Resolves when what is in turn on the stream now is done, however it ends. */
  readonly idle: (stream: string) => Promise<void>
}

export type Handled<K extends Kind> =
  | (Loaded<K> & { readonly ok: true })
  | (Rejection<K['code']> & { readonly ok: false })
  | { readonly ok: false; readonly stale: Loaded<K> }

export type Request<K extends Kind> = {
  readonly command: K['command']
  readonly context: Context
  /** The revision that the caller read: with it there is no second try. */
  readonly ifMatch?: ((row: K['row'] | undefined) => boolean) | undefined
  /** The stream most likely does not exist yet, so it is not read first. */
  readonly isNew?: boolean
}

/** Between processes the first append wins; the others try again, a little later each time, but not for ever. */
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
  const aggregates = createAggregateRepository(store)
  const idSecret = createIdSecret({ store, world, aggregates })
  return { store, world, aggregates, idSecret, noteEffect: done, inTurn, idle }
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

/** The outcome of the command on this state: the events to append, or an answer that needs none. */
const decideFrom = <K extends Kind>(
  { aggregate }: Entity<K>,
  before: Loaded<K>,
  { command, ifMatch }: Request<K>,
): { readonly events: readonly K['event'][] } | { readonly answer: Handled<K> } => {
  if (ifMatch && !ifMatch(before.row)) return { answer: { ok: false, stale: before } }
  const decided = aggregate.decider.decide(command, before.state)
  if (isRejection(decided)) return { answer: { ok: false, ...decided } }
  return decided.length === 0 ? { answer: { ok: true, ...before } } : { events: decided }
}

/**
 * Other processes were first at every attempt, and the command has appended nothing. Thrown, and no answer, so that no
 * caller can take a lost race for success.
 */
export class Contended extends Unavailable {
  constructor(stream: string) {
    super('event store', 'none', new Error(`Others changed ${stream} at each of ${ATTEMPTS_MAX} attempts.`))
    this.name = 'Contended'
  }
}

/**
 * The stream as it is after a conflict. The store may refuse an append because of a version that is decided and cannot be
 * read yet; until it can be read, the caller is not told that a version is stale which every read still shows.
 */
const readNewer = async <K extends Kind>(
  { aggregates, world }: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  before: Loaded<K>,
): Promise<Loaded<K>> => {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const loaded = await aggregates.load(entity, id)
    if (loaded.revision !== before.revision) return loaded
    await pauseBefore(attempt, world)
  }
  throw new Unavailable('event store', 'none', new Error(`${id} has a newer version that cannot be read yet.`))
}

/** The stream with the events appended; undefined when it was not at the revision that they were decided on. */
const append = async <K extends Kind>(
  { store, aggregates, noteEffect }: Ledger,
  { entity, id, context }: { entity: Entity<K>; id: Id<IdPrefix>; context: Context },
  before: Loaded<K>,
  decided: readonly K['event'][],
): Promise<Loaded<K> | undefined> => {
  const after = before.revision === 'no_stream' ? -1n : before.revision
  const events = recordAll(decided, id, context, after)
  const encoded = events.map(recorded => newEventOf(entity.aggregate.codec, recorded))
  const appended = await store.append(streamOf(entity.aggregate, id), encoded, before.revision)
  if (!appended.ok) return undefined
  noteEffect()
  return aggregates.advance(
    entity,
    before,
    events.map(event => ({ ...event, position: appended.position })),
  )
}

/**
 * The only optimistic loop of the service: fold, decide, append at exactly the revision that was folded. Answers with the
 * stream as it is afterwards; a command that was already carried out appends nothing. Throws Unavailable when the store
 * does not answer, and Contended when others were first at every attempt.
 *
 * The first attempt trusts the state that this process saw last, since an append to a stream that has moved on is refused
 * by the store. An answer that appends nothing has no such check, so it is only ever given from what was just read.
 */
export const handle = <K extends Kind>(
  ledger: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  request: Request<K>,
): Promise<Handled<K>> => {
  const { aggregates, world, inTurn, noteEffect } = ledger
  const { context, ifMatch, isNew } = request
  const stream = streamOf(entity.aggregate, id)
  return inTurn(stream, async () => {
    let guess = isNew ? nothingLoaded(entity) : aggregates.cached(entity, id)
    for (let attempt = 1; ; attempt++) {
      const guessed = guess !== undefined
      const before = guess ?? (await aggregates.load(entity, id))
      guess = undefined
      const judged = decideFrom(entity, before, request)
      if ('answer' in judged) {
        if (guessed) continue
        // Done before, or a key that an earlier request has used: either way something of it is durable.
        if (judged.answer.ok || (isNew && before.revision !== 'no_stream')) noteEffect()
        return judged.answer
      }
      const appended = await append(ledger, { entity, id, context }, before, judged.events)
      if (appended) return { ok: true, ...appended }
      if (ifMatch) return { ok: false, stale: await readNewer(ledger, entity, id, before) }
      if (attempt === ATTEMPTS_MAX) throw new Contended(stream)
      if (!guessed) await pauseBefore(attempt, world)
    }
  })
}
