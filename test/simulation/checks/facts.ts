import { createHash } from 'node:crypto'
import { publishedBy } from '../../../projections/facts/projection.ts'
import { topicOf } from '../../../projections/factTopics.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { CloudEvent } from '../../../streams/facts.ts'
import { decode } from '../../../src/feeds/decode.ts'
import type { FactMessage } from '../../../src/ports.ts'
import type { FactReader } from '../clients/reader.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { SimulatedBroker } from '../factBus.ts'
import type { History } from '../history.ts'
import { UNKNOWN_EVENT_TYPE } from '../unknownEventType.ts'
import { violation, type Violation } from './violation.ts'

/** The published facts, in Kafka, at GET /events and in manifests, compared with the log. */

type Fact = { readonly event: CloudEvent; readonly topic: string; readonly position: bigint; readonly storedAt: string }

/** All facts of the log, in its order. Streams with events of unknown types are left out, because their facts are parked. */
export const factsIn = (log: SimulatedLog): readonly Fact[] => {
  const poisoned = new Set(log.events.filter(({ type }) => type === UNKNOWN_EVENT_TYPE).map(({ stream }) => stream))
  return log.events
    .filter(({ stream }) => !poisoned.has(stream))
    .flatMap(stored => {
      const { category, recorded } = decode(stored)
      const event = publishedBy(category, recorded)
      return event ? [{ event, topic: topicOf(category), position: stored.position, storedAt: stored.storedAt }] : []
    })
}

/** The first item with each id. */
const firstArrivals = <T>(items: readonly T[], idOf: (item: T) => string): readonly T[] => {
  const seen = new Set<string>()
  return items.filter(item => !seen.has(idOf(item)) && seen.add(idOf(item)))
}

type Arrived = { readonly id: string; readonly key: string; readonly sequence: string }

const inOrderPerKey = (arrived: readonly Arrived[], where: string): Violation[] =>
  [
    ...Map.groupBy(
      firstArrivals(arrived, ({ id }) => id),
      ({ key }) => key,
    ),
  ].flatMap(([key, all]) => {
    const wrong = all.find((one, index) => index > 0 && one.sequence < (all[index - 1]?.sequence ?? ''))
    return wrong
      ? [
          violation(
            'facts come in order per key',
            `${where}, ${key}: ${all.map(({ sequence }) => Number(sequence)).join()}`,
          ),
        ]
      : []
  })

/** Facts that were stored before `settledAt` must have arrived, and only facts of the log may have arrived. */
const sameSet = (
  expected: readonly Fact[],
  arrived: readonly string[],
  { where, settledAt }: { readonly where: string; readonly settledAt: string },
): Violation[] => {
  const [target, there] = [new Set(expected.map(({ event }) => event.id)), new Set(arrived)]
  const due = expected.filter(({ storedAt }) => storedAt < settledAt)
  const missing = due.map(({ event }) => event.id).filter(id => !there.has(id))
  const phantoms = arrived.filter(id => !target.has(id))
  return [
    ...(missing.length > 0 ? [violation('no committed fact is left out', `${where} lacks ${missing.join()}`)] : []),
    ...(phantoms.length > 0
      ? [violation('nothing is published that is not in the log', `${where} has ${phantoms.join()}`)]
      : []),
  ]
}

const idOf = ({ headers }: FactMessage): string => headers['ce_id'] ?? ''
const bytesOf = (message: FactMessage): string => JSON.stringify([message.key, message.headers, message.value])

const redeliveriesAreEqual = (messages: readonly FactMessage[], topic: string): Violation[] =>
  [...Map.groupBy(messages, idOf)].flatMap(([id, all]) =>
    new Set(all.map(bytesOf)).size > 1 ? [violation('a redelivery is byte-identical', `${topic} ${id}`)] : [],
  )

export const checkTopics = (log: SimulatedLog, broker: SimulatedBroker, settledAt: string): Violation[] => {
  const byTopic = Map.groupBy(factsIn(log), ({ topic }) => topic)
  const topics = new Set([
    ...byTopic.keys(),
    ...broker.topics().filter(name => !name.startsWith('ledger.subscription.')),
  ])
  return [...topics].flatMap(topic => {
    const messages = broker.messages(topic)
    const arrived = messages.map(message => ({
      id: idOf(message),
      key: message.key,
      sequence: message.headers['ce_sequence'] ?? '',
    }))
    return [
      ...inOrderPerKey(arrived, topic),
      ...sameSet(
        byTopic.get(topic) ?? [],
        arrived.map(({ id }) => id),
        { where: topic, settledAt },
      ),
      ...redeliveriesAreEqual(messages, topic),
    ]
  })
}

export const checkReader = (
  log: SimulatedLog,
  { name: where, caller, seen, isOnce }: FactReader,
  settledAt: string,
): Violation[] => {
  const expected = factsIn(log).filter(({ event }) => event.tenantid === caller.tenant)
  const foreign = seen.filter(({ tenant }) => tenant !== caller.tenant)
  const ids = seen.map(({ id }) => id)
  const before = new Set<string>()
  const again = isOnce && ids.find(id => before.size === before.add(id).size)
  return [
    ...foreign.map(({ id }) => violation('no row of another tenant is visible', `${where} shows ${id}`)),
    ...(again ? [violation('a reader sees each fact once', `${where} shows ${again} again`)] : []),
    ...inOrderPerKey(seen, where),
    ...sameSet(expected, ids, { where, settledAt }),
  ]
}

type Proof = {
  readonly topic: string
  readonly from_position: string
  readonly to_position: string
  readonly count: number
  readonly sha256: string
  readonly missing?: readonly { readonly id: string; readonly position: string }[]
}

/** A manifest counts and hashes the facts in its range, except those that it names as missing. */
const checkProof = (log: SimulatedLog, facts: readonly Fact[], proof: Proof, where: string): Violation[] => {
  const { topic, from_position, to_position, count, sha256, missing = [] } = proof
  const [from, to] = [BigInt(from_position), BigInt(to_position)]
  const held = new Map(missing.map(({ id, position }) => [id, BigInt(position)]))
  const ids = facts
    .filter(fact => fact.topic === topic && fact.position >= from && fact.position <= to && !held.has(fact.event.id))
    .map(({ event }) => event.id)
  const hash = createHash('sha256')
    .update(ids.map(id => `${id}\n`).join(''))
    .digest('hex')
  const text = `${where}, ${topic} from ${from} to ${to}: ${count} facts and ${held.size} missing`
  const isNamed = [...held].every(([id, position]) =>
    log.events.some(event => event.id === id && event.position === position && position >= from && position <= to),
  )
  if (!isNamed) return [violation('a manifest names existing facts as missing', text)]
  if (ids.length === count && hash === sha256) return []
  return [violation('a manifest counts and hashes the facts of its range', `${text}, the log has ${ids.length} others`)]
}

/** Checks the manifests that were sealed, and those in answers. */
export const checkManifests = (log: SimulatedLog, { attempts }: Pick<History, 'attempts'>): Violation[] => {
  const facts = factsIn(log)
  const sealed = log.events
    .filter(({ stream, type }) => partsOf(stream).category === 'manifest' && type === 'ManifestSealed')
    .flatMap(({ data }) => checkProof(log, facts, data as never as Proof, 'sealed'))
  const told = attempts.flatMap(({ sent: { operation, caller }, answer }) =>
    operation === 'read_events_manifest' && answer?.status === 200 && answer.body
      ? [{ caller, body: answer.body }]
      : [],
  )
  return [
    ...sealed,
    ...told.flatMap(({ caller, body }) => {
      const own = facts.filter(({ event }) => event.tenantid === caller.tenant)
      const { items } = body as never as { readonly items: readonly Proof[] }
      return items.flatMap(item => checkProof(log, own, item, `told ${caller.tenant}`))
    }),
  ]
}

/**
 * The topic of a subscriber has only facts of its tenant and of the types that it subscribed to. It has all of them, unless the
 * subscription was ever paused or deleted.
 */
export const checkSubscriptions = (log: SimulatedLog, broker: SimulatedBroker, settledAt: string): Violation[] => {
  const facts = factsIn(log)
  const streams = new Set(log.events.map(({ stream }) => stream).filter(name => name.startsWith('subscription-')))
  return [...streams].flatMap(stream => {
    const events = log.stream(stream)
    const [created] = events
    const topic = `ledger.subscription.${partsOf(stream).id}`
    if (created === undefined || !broker.topics().includes(topic)) return []
    const { types, from_position } = created.data as never as { types: readonly string[]; from_position: string }
    const tenant = created.metadata['tenant']
    const own = facts.filter(({ event }) => event.tenantid === tenant && types.includes(event.type))
    const messages = broker.messages(topic)
    const ids = new Set(own.map(({ event }) => event.id))
    const foreign = messages.find(message => !ids.has(idOf(message)))
    const arrived = new Set(messages.map(idOf))
    const isActive = events.every(({ type }) => type === 'SubscriptionCreated' || type.startsWith('SubscriptionReplay'))
    const due = isActive ? own.filter(fact => fact.storedAt < settledAt && fact.position >= BigInt(from_position)) : []
    const missing = due.find(({ event }) => !arrived.has(event.id))
    return [
      ...(foreign ? [violation('a subscriber receives only its own facts', `${topic} has ${idOf(foreign)}`)] : []),
      ...(missing ? [violation('no committed fact is left out', `${topic} lacks ${missing.event.id}`)] : []),
      ...redeliveriesAreEqual(messages, topic),
    ]
  })
}
