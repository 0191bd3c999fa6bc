import { timeNow } from '../lib/time.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { SYSTEM_TENANT, type Metadata } from '../../streams/envelope.ts'
import { secret } from '../../streams/secret/index.ts'
import { type EventStore, Unavailable, type World } from '../ports.ts'
import { derivedId, eventIdOf } from '../lib/identifiers.ts'
import { newEventOf, recordedOf } from '../lib/storedEvents.ts'

/**
 * The secret with which ids are derived from idempotency keys (HMAC-SHA-256), so an id cannot be computed from a
 * guessed key, tenant and caller.
 *
 * The secret is stored in the log, in a stream of its own: all instances share it, and a backup of the event store has
 * it beside the results of the keys that it protects, so neither is restored without the other. Readers of the log
 * see the ids anyway. The secret never changes, because under another one a repeated key would find nothing, and pay
 * twice.
 */

const SECRET_ID = derivedId('sec', 'ids of idempotency keys')
/** The stream's first event is also the identity of the log (logIdentity.ts). */
export const SECRET_STREAM = streamOf(secret, SECRET_ID)
const SECRET_BYTES = 32

/** The log has results of idempotency keys but not the secret, so nothing may be created under a key. */
export class IdSecretLost extends Unavailable {
  constructor() {
    const reason =
      `The event store has results of idempotency keys, and the secret of their ids is not in it: stream ${SECRET_STREAM}. ` +
      'With another secret a repeated key would pay twice. Restore that stream, or the event store, from a backup.'
    super('event store', { effect: 'none', cause: new Error(reason) })
    this.message = reason
    this.name = 'IdSecretLost'
  }
}

type IdSecretDependencies = {
  readonly store: EventStore
  readonly world: World
}

const readSecret = async ({ store }: IdSecretDependencies): Promise<Uint8Array | undefined> => {
  for await (const stored of store.readStream(SECRET_STREAM, { from: 0n, limit: 1 }))
    return Buffer.from(recordedOf(secret.codec, stored).event.data.secret, 'base64url')
  return undefined
}

/** Whether any event of the log has an idempotency record (member `claim`). */
export const hasIdempotencyRecords = async ({ store }: { store: Pick<EventStore, 'subscribe'> }): Promise<boolean> => {
  const stop = new AbortController()
  try {
    for await (const item of store.subscribe({ after: 'start', signal: stop.signal })) {
      if (item.kind === 'caught_up') return false
      if (item.kind === 'interrupted') throw new Unavailable('event store', { effect: 'none', cause: item.error })
      if (item.kind === 'event' && (item.event.data['claim'] ?? null) !== null) return true
    }
  } finally {
    stop.abort()
  }
  throw new Unavailable('event store', { effect: 'none', cause: new Error('The log could not be read to its end.') })
}

const metadataOf = (run: string, world: World): Metadata => ({
  tenant: SYSTEM_TENANT,
  subject: 'secrets',
  client: SYSTEM_TENANT,
  authority: 'secrets',
  correlationId: run,
  causationId: run,
  at: timeNow(world),
  schemaVersion: 0,
})

/** Appends a new secret. With concurrent processes, that of the first append is the secret of all. */
const makeSecret = async ({ store, world }: IdSecretDependencies): Promise<void> => {
  const bytes = world.randomBytes(SECRET_BYTES)
  const run = `secret-${Buffer.from(world.randomBytes(16)).toString('hex')}`
  const data = { secret: Buffer.from(bytes).toString('base64url') }
  const event = { type: 'SecretMade' as const, data }
  const decided = { event, eventId: eventIdOf(run, SECRET_ID, 0n), metadata: metadataOf(run, world) }
  await store.append(SECRET_STREAM, [newEventOf(secret.codec, decided)], 'no_stream')
}

const openSecret = async (dependencies: IdSecretDependencies): Promise<Uint8Array> => {
  const existing = await readSecret(dependencies)
  if (existing) return existing
  if (!(await hasIdempotencyRecords(dependencies))) await makeSecret(dependencies)
  // Idempotency records may also be there because another process has made the secret since the first read, and used
  // it.
  const made = await readSecret(dependencies)
  if (made === undefined) throw new IdSecretLost()
  return made
}

/** Read at the first call, or created in a log without results of keys. After a failure the next call tries again. */
export const createLogSecret = (dependencies: IdSecretDependencies): (() => Promise<Uint8Array>) => {
  let opening: Promise<Uint8Array> | undefined
  return () => {
    opening ??= openSecret(dependencies).catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
}
