import { streamOf } from '../../streams/aggregate.ts'
import { type AnyEvent, type GrowthCode, isRejection, type Rejection } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import { type EventStore, Unavailable, type World } from '../ports.ts'
import { bytesOf, type ByteQuota, type Charge, chargedTenant, checkQuota, NO_BYTE_QUOTA } from './quotas/byteQuota.ts'
import type { Entity, Kind } from './entities.ts'
import { eventIdOf } from '../lib/identifiers.ts'
import { createLogSecret } from '../logIdentity/idSecret.ts'
import { raisingVocabulary } from '../logIdentity/vocabulary.ts'
import {
  createAggregateRepository,
  nothingLoaded,
  type AggregateRepository,
  type Loaded,
} from './aggregateRepository.ts'
import { CHANGES_MAX, decisionOn } from './streamGrowth.ts'
import { newEventOf, recordedOf } from '../lib/storedEvents.ts'
import { pauseBefore } from '../settings/timeBudgets.ts'
import { createSerialQueues } from '../lib/serialQueue.ts'

/** The caller, cause and time of a command. The ids of its events are derived from `commandId`. */
export type Context = Omit<Metadata, 'schemaVersion' | 'causationId'> & {
  readonly commandId: string
  /** The event or command that caused this one; the command itself when it came from outside. */
  readonly causationId?: string
  /** True when another process may send the same command, with this `commandId`, at another time: process managers do. */
  readonly mayBeRepeated?: boolean
  readonly quota?: Charge
}

/** The dependencies of commands. */
export type Ledger = {
  readonly store: EventStore
  readonly world: World
  readonly aggregates: AggregateRepository
  /** To be called as soon as a part of the command is durable; see asOneCommand.ts. */
  readonly noteEffect: () => void
  /** Whether a part of the command is durable. */
  readonly hasEffect: () => boolean
  readonly byteQuota: ByteQuota
  /** The secret for ids derived from idempotency keys. Throws IdSecretLost, and Unavailable with no effect. */
  readonly idSecret: () => Promise<Uint8Array>
  /** Serializes work on one stream, so commands of one process do not lose races against each other. */
  readonly inTurn: <T>(stream: string, work: () => Promise<T>) => Promise<T>
  /** Settles with the stream's in-flight work; undefined when idle. */
  readonly idle: (stream: string) => Promise<void> | undefined
  /** The number of events from which a stream takes no further changes (streamGrowth.ts). */
  readonly changesMax: number
  /** Whether other processes answer requests of the same callers, so a cached state is often not the newest. */
  readonly hasSiblings?: boolean
}

export type Handled<K extends Kind> =
  | (Loaded<K> & { readonly ok: true })
  | (Rejection<K['code'] | GrowthCode> & { readonly ok: false })
  | { readonly ok: false; readonly stale: Loaded<K> }

export type CommandRequest<K extends Kind> = {
  readonly command: K['command']
  readonly context: Context
  /** The client's If-Match test; with it there is no retry after a conflict. */
  readonly ifMatch?: ((row: K['row'] | undefined) => boolean) | undefined
  /** `allow_stale` by default. */
  readonly load?: LoadPolicy
}

/**
 * The state that the first attempt is decided on. The store refuses an append to a stream that has moved on, so a state may be
 * wrong; every further attempt requires a load.
 *
 *   assume_empty   the stream most likely does not exist yet: it is not read
 *   allow_stale    the cached state; the stream is read where there is none
 *   require_load   the stream is read
 */
export type LoadPolicy = 'assume_empty' | 'allow_stale' | 'require_load'

/** Attempts of the optimistic loop when other processes append first. */
const ATTEMPTS_MAX = 12

export const createLedger = (opened: EventStore, world: World, byteQuota = NO_BYTE_QUOTA): Ledger => {
  const store = raisingVocabulary(opened, world)
  const done = (): void => undefined
  const aggregates = createAggregateRepository(store)
  const idSecret = createLogSecret({ store, world })
  const effect = { noteEffect: done, hasEffect: () => false }
  return { store, world, aggregates, byteQuota, idSecret, ...effect, ...createSerialQueues(), changesMax: CHANGES_MAX }
}

/**
 * The only optimistic loop of the service. Returns the stream as it is afterwards; a command that was executed before
 * appends nothing. Throws Unavailable, QuotaExceeded, and Contended when others were first at every attempt.
 */
export const handle = <K extends Kind>(
  ledger: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  request: CommandRequest<K>,
): Promise<Handled<K>> => {
  const { world, inTurn, noteEffect } = ledger
  const { context, ifMatch, load: firstLoad = 'allow_stale' } = request
  const stream = streamOf(entity.aggregate, id)
  return inTurn(stream, async () => {
    for (let attempt = 1, load = firstLoad; ; attempt++, load = 'require_load') {
      // 1. Load.
      const { before, isCurrent } = await loadBy(load, ledger, entity, id)
      // 2. Decide. No append checks an answer that needs none, so it is given only from a state that was just read.
      const decided = decideFrom(ledger, entity, before, request)
      if ('answer' in decided) {
        if (!isCurrent) continue
        // The command was executed before, or its idempotency key was used: either way a part of it is durable.
        if (decided.answer.ok || (firstLoad === 'assume_empty' && before.revision !== 'no_stream')) noteEffect()
        return decided.answer
      }
      // 3. Check the quota. A stale state does not show whether the command was executed before, which needs no quota.
      try {
        await checkQuota(ledger, context)
      } catch (error) {
        if (isCurrent) throw error
        continue
      }
      // 4. Append.
      const appended = await append(ledger, { entity, id, context }, before, decided.events)
      if (appended) return { ok: true, ...appended }
      // 5. After a conflict, answer a client that has sent If-Match, or try again.
      if (ifMatch) return { ok: false, stale: await readNewer(ledger, entity, id, before) }
      if (attempt === ATTEMPTS_MAX) throw new Contended(stream)
      if (isCurrent) await pauseBefore(attempt, world)
    }
  })
}

const loadBy = async <K extends Kind>(
  policy: LoadPolicy,
  { aggregates }: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
): Promise<{ readonly before: Loaded<K>; readonly isCurrent: boolean }> => {
  if (policy === 'assume_empty') return { before: nothingLoaded(entity), isCurrent: false }
  const cached = policy === 'allow_stale' ? aggregates.cached(entity, id) : undefined
  return cached ? { before: cached, isCurrent: false } : { before: await aggregates.load(entity, id), isCurrent: true }
}

/** The outcome of the command on this state: the events to append, or an answer without an append. */
const decideFrom = <K extends Kind>(
  ledger: Ledger,
  entity: Entity<K>,
  before: Loaded<K>,
  { command, ifMatch }: CommandRequest<K>,
): { readonly events: readonly K['event'][] } | { readonly answer: Handled<K> } => {
  if (ifMatch && !ifMatch(before.row)) return { answer: { ok: false, stale: before } }
  const decided = decisionOn(ledger, entity, before, command)
  if (isRejection(decided)) return { answer: { ok: false, ...decided } }
  return decided.length === 0 ? { answer: { ok: true, ...before } } : { events: decided }
}

/** Thrown rather than returned, so that no caller can take a lost race for success. Nothing was appended. */
export class Contended extends Unavailable {
  constructor(stream: string) {
    const cause = new Error(`Others changed ${stream} at each of ${ATTEMPTS_MAX} attempts.`)
    super('event store', { effect: 'none', cause })
    this.name = 'Contended'
  }
}

/**
 * The store may refuse an append because of a version that cannot be read yet. Until then the client is not told 412,
 * since every read would still show the ETag that it sent.
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
  throw new Unavailable('event store', {
    effect: 'none',
    cause: new Error(`${id} has a newer version that cannot be read yet.`),
  })
}

/** The events as the store has them: an append that repeats an earlier one changes nothing, and that one has other times. */
const asStored = async <K extends Kind>(
  { store }: Ledger,
  { aggregate }: Entity<K>,
  sent: readonly Recorded<K['event']>[],
): Promise<readonly Recorded<K['event']>[]> => {
  const [first] = sent
  if (first === undefined) return sent
  const stored: Recorded<K['event']>[] = []
  const range = { from: first.revision, limit: sent.length }
  for await (const event of store.readStream(streamOf(aggregate, first.id as Id<IdPrefix>), range))
    stored.push({ ...recordedOf(aggregate.codec, event), position: first.position })
  if (stored.length === sent.length) return stored
  throw new Unavailable('event store', {
    effect: 'unknown',
    cause: new Error(`${first.id} lacks events that were appended.`),
  })
}

/** Appends the events; undefined when the stream was not at the revision that they were decided on. */
const append = async <K extends Kind>(
  ledger: Ledger,
  { entity, id, context }: { entity: Entity<K>; id: Id<IdPrefix>; context: Context },
  before: Loaded<K>,
  decided: readonly K['event'][],
): Promise<Loaded<K> | undefined> => {
  const { store, aggregates, byteQuota, noteEffect } = ledger
  const after = before.revision === 'no_stream' ? -1n : before.revision
  const events = recordAll(decided, id, context, after)
  const encoded = events.map(recorded => newEventOf(entity.aggregate.codec, recorded))
  const appended = await store.append(streamOf(entity.aggregate, id), encoded, before.revision)
  if (!appended.ok) return undefined
  noteEffect()
  byteQuota.count(chargedTenant(context), bytesOf(encoded))
  const sent = events.map(event => ({ ...event, position: appended.position }))
  return aggregates.advance(entity, before, context.mayBeRepeated ? await asStored(ledger, entity, sent) : sent)
}

const recordAll = <E extends AnyEvent>(events: readonly E[], id: string, context: Context, after: bigint) => {
  const { commandId, causationId = commandId, mayBeRepeated: _, quota: __, ...metadata } = context
  return events.map((event, index) => {
    const revision = after + BigInt(index) + 1n
    const eventId = eventIdOf(commandId, id, revision)
    return { event, eventId, id, revision, position: 0n, metadata: { ...metadata, causationId, schemaVersion: 0 } }
  })
}
