/** Replays recorded conversations with a real EventStoreDB, and renders each response as it was recorded. */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setImmediate as nextLoop, setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import {
  type AppendExpectedRevision,
  type EventStoreDBClient,
  type ExpectedRevision,
  type ResolvedEvent,
  type StreamMetadata,
  binaryEvent,
  eventTypeFilter,
  jsonEvent,
  streamNameFilter,
} from '@eventstore/db-client'

type Filter = {
  readonly filterOn: 'streamName' | 'eventType'
  readonly checkpointInterval: number
  readonly maxSearchWindow?: number
  readonly prefixes?: readonly string[]
  readonly regex?: string
}
export type Step = {
  readonly do: string
  readonly stream: string
  readonly expected: string
  readonly events: readonly string[]
  readonly event: string
  readonly to: string
  readonly metadata: StreamMetadata
  readonly direction: 'forwards' | 'backwards'
  readonly from: string
  readonly after: string
  readonly max: number
  readonly resolveLinks: boolean
  readonly filter: Filter
}
export type Answer = string | object
export type Conversations = Readonly<Record<string, readonly (readonly [Step, Answer])[]>>

const FILE = new URL('./conversations.json.gz', import.meta.url)

export const conversations = (): Conversations =>
  JSON.parse(gunzipSync(readFileSync(FILE)).toString('utf8')) as Conversations

const WHOLE_MAX = 10_000
const SETTLED_LOOPS = 5
/** The longest wait for a caught-up message that the real server sent; it is long, for a loaded machine. */
const CAUGHT_UP_MAX_MS = 120_000
type Position = { readonly commit: bigint; readonly prepare: bigint }
type Recorded = NonNullable<ResolvedEvent['event']>
type Failure = Error & { readonly type?: string; readonly expectedVersion?: unknown; readonly actualVersion?: unknown }
type Source = AsyncIterable<ResolvedEvent> & {
  readonly readableLength: number
  readonly writableLength?: number
  unsubscribe(): Promise<void>
  on(event: 'caughtUp' | 'confirmation', listener: () => void): unknown
}

const revisionOf = (text: string): AppendExpectedRevision =>
  /^\d+$/.test(text) ? BigInt(text) : (text as AppendExpectedRevision)

/** The client sends members that its types do not declare. */
const removedAt = (text: string): ExpectedRevision => revisionOf(text) as ExpectedRevision

const fromOf = (text: string): 'start' | 'end' | bigint => (text === 'start' || text === 'end' ? text : BigInt(text))

/** Subscribes to a stream with an event, and resolves at its caught-up message. */
const laterSubscriptionCaughtUp = async (client: EventStoreDBClient): Promise<void> => {
  const stream = `later${randomUUID()}`
  await client.appendToStream(stream, jsonEvent({ type: 'T0', data: {} }))
  const later = client.subscribeToStream(stream).on('data', () => undefined)
  await once(later, 'caughtUp')
  await later.unsubscribe()
}

/** One conversation, on streams and events of its own. */
export const openConversation = (client: EventStoreDBClient) => {
  const prefix = `talk${randomUUID().replaceAll('-', '')}-`
  const ids = new Map<string, string>()
  const names = new Map<string, string>()
  const positions = new Map<string, Position>()

  const idOf = (name: string): string => {
    const id = ids.get(name) ?? randomUUID()
    ids.set(name, id)
    names.set(id, name)
    return id
  }
  const isOwn = (stream: string): boolean => stream.replace(/^\$\$/, '').startsWith(prefix)
  const notePosition = (name: string | undefined, position: Position | undefined): void => {
    if (name !== undefined && position !== undefined && !positions.has(name)) positions.set(name, position)
  }
  const shown = ({ id, streamId, revision, type, position }: Recorded): string => {
    notePosition(names.get(id), position)
    const name = type.startsWith('$') ? type : (names.get(id) ?? 'another')
    return `${streamId.replace(prefix, '')}@${revision}:${name}`
  }
  const resolved = ({ event, link }: ResolvedEvent): string => {
    if (link === undefined) return event === undefined ? 'nothing' : shown(event)
    const via = shown(link).replace(/:\$>$/, '($>)')
    return `${via}→${event === undefined ? 'nothing' : shown(event)}`
  }
  const own = (events: readonly ResolvedEvent[]): string[] =>
    events.filter(({ event, link }) => isOwn((link ?? event)?.streamId ?? '')).map(resolved)
  const at = (position: Position | undefined): string | null => {
    if (position === undefined) return null
    return (
      [...positions].flatMap(([name, { commit }]) => (commit === position.commit ? [name] : [])).join() || 'another'
    )
  }
  const collect = async (reading: AsyncIterable<ResolvedEvent>): Promise<ResolvedEvent[]> => {
    const events: ResolvedEvent[] = []
    for await (const event of reading) events.push(event)
    return events
  }
  /**
   * Ends when the subscription has caught up or fails; without an expected caught-up message, when a later subscription has
   * caught up, because the server has then sent everything to the earlier one.
   */
  const follow = async (source: Source, isCaughtUpExpected: boolean): Promise<Answer[]> => {
    const received: Answer[] = []
    const ended = Promise.withResolvers<Answer>()
    const confirmed = new Promise<void>(resolve => void source.on('confirmation', resolve))
    source.on('caughtUp', () => ended.resolve('caught up'))
    const reading = (async () => {
      for await (const event of source) received.push(...own([event]))
    })().catch((error: Failure) => ended.resolve(failureOf(error)))
    const missing = isCaughtUpExpected
      ? sleep(CAUGHT_UP_MAX_MS, undefined, { ref: false })
      : confirmed.then(() => laterSubscriptionCaughtUp(client))
    const end = await Promise.race([ended.promise, missing.then((): Answer => 'no caught-up')])
    // Events before the message may still be in the buffers of the client.
    for (let loops = 0; loops < SETTLED_LOOPS; loops += 1) {
      await nextLoop()
      if (source.readableLength + (source.writableLength ?? 0) > 0) loops = 0
    }
    await source.unsubscribe()
    await reading
    return [...received, end]
  }
  const filterOf = ({ filterOn, ...rest }: Filter) => {
    const options =
      filterOn === 'eventType'
        ? rest
        : {
            ...rest,
            ...(rest.prefixes && { prefixes: rest.prefixes.map(text => prefix + text) }),
            ...(rest.regex !== undefined && { regex: rest.regex.replace('^', `^${prefix}`) }),
          }
    const make = filterOn === 'eventType' ? eventTypeFilter : streamNameFilter
    return make(options as Parameters<typeof make>[0])
  }

  const steps: Readonly<Record<string, (step: Step, isCaughtUpExpected: boolean) => Promise<Answer>>> = {
    append: async ({ stream, events, expected }) => {
      const sent = events.map(name =>
        jsonEvent({ id: idOf(name), type: `T${Number(name.slice(1)) % 3}`, data: { x: 1 } }),
      )
      const result = await client.appendToStream(prefix + stream, sent, { expectedRevision: revisionOf(expected) })
      notePosition(events.at(-1), result.position)
      return { ok: true, next: String(result.nextExpectedRevision), at: at(result.position) }
    },
    'append a link': async ({ stream, event, to }) => {
      const data = Buffer.from(to.replace('@', `@${prefix}`))
      const result = await client.appendToStream(prefix + stream, binaryEvent({ id: idOf(event), type: '$>', data }))
      notePosition(event, result.position)
      return { ok: true, next: String(result.nextExpectedRevision) }
    },
    delete: async ({ stream, expected }) => {
      const { position } = await client.deleteStream(prefix + stream, { expectedRevision: removedAt(expected) })
      return { ok: true, at: position === undefined ? null : 'a position' }
    },
    tombstone: async ({ stream, expected }) => {
      const { position } = await client.tombstoneStream(prefix + stream, { expectedRevision: removedAt(expected) })
      return { ok: true, at: position === undefined ? null : 'a position' }
    },
    'set metadata': async ({ stream, metadata, expected }) => {
      const options = { expectedRevision: revisionOf(expected) }
      const result = await client.setStreamMetadata(prefix + stream, metadata, options)
      return { ok: true, next: String(result.nextExpectedRevision) }
    },
    'get metadata': async ({ stream }) => {
      const { metadata, metastreamRevision } = await client.getStreamMetadata(prefix + stream)
      return { metadata: metadata ?? null, revision: metastreamRevision === undefined ? null : 'present' }
    },
    'read stream': async ({ stream, direction, from, max, resolveLinks }) => {
      const options = { direction, fromRevision: fromOf(from), maxCount: max, resolveLinkTos: resolveLinks }
      return own(await collect(client.readStream(prefix + stream, options)))
    },
    'read $all backwards from the end': async ({ resolveLinks }) => {
      const options = { direction: 'backwards', fromPosition: 'end', maxCount: WHOLE_MAX } as const
      return own(await collect(client.readAll({ ...options, resolveLinkTos: resolveLinks })))
    },
    'read $all from the position of': async ({ event, direction, max }) => {
      const fromPosition = positions.get(event)
      if (fromPosition === undefined) return 'no position'
      return own(await collect(client.readAll({ direction, fromPosition, maxCount: WHOLE_MAX }))).slice(0, max)
    },
    'subscribe to stream': ({ stream, after, resolveLinks }, isCaughtUpExpected) => {
      const options = { fromRevision: fromOf(after), resolveLinkTos: resolveLinks }
      return follow(client.subscribeToStream(prefix + stream, options), isCaughtUpExpected)
    },
    'subscribe to $all': ({ filter, after }, isCaughtUpExpected) => {
      const fromPosition = after === 'start' ? 'start' : positions.get(after)
      if (fromPosition === undefined) return Promise.resolve('no position')
      return follow(client.subscribeToAll({ filter: filterOf(filter), fromPosition }), isCaughtUpExpected)
    },
  }
  return async (step: Step, isCaughtUpExpected: boolean): Promise<Answer> => {
    const run = steps[step.do]
    if (run === undefined) throw new Error(`no such step: ${step.do}`)
    try {
      return await run(step, isCaughtUpExpected)
    } catch (error) {
      return failureOf(error as Failure)
    }
  }
}

const failureOf = ({ type, message, expectedVersion, actualVersion }: Failure): Answer => {
  if (type === undefined) return { error: message }
  if (type === 'wrong-expected-version')
    return { error: type, expected: String(expectedVersion), actual: String(actualVersion) }
  return type === 'unknown' ? { error: type, says: message } : { error: type }
}
