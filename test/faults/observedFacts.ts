import { expect } from 'chai'
import type { CloudEvent } from '../../streams/facts.ts'
import type { Committed, Message, PublisherHarness } from './publisherHarness.ts'

/** Checks that the log, GET /events and the topics have the same facts. */
export type ObservedFacts = {
  readonly committed: readonly Committed[]
  readonly published: readonly Message[]
  /** The items of GET /events by tenant. */
  readonly served: ReadonlyMap<string, readonly CloudEvent[]>
}

export const observeFacts = async (harness: PublisherHarness, tenants: readonly string[]): Promise<ObservedFacts> => {
  await harness.drained()
  const [committed, published] = await Promise.all([harness.committed(), harness.published()])
  const served = await Promise.all(tenants.map(async tenant => [tenant, await harness.served(tenant)] as const))
  return { committed, published, served: new Map(served) }
}

const idOf = ({ headers }: Message): string => headers['ce_id'] ?? 'none'

const byId = ({ published }: ObservedFacts): Message[][] => [...Map.groupBy(published, idOf).values()]

/** The first message of each id, as a consumer sees them that drops duplicates. */
const withoutDuplicates = (observed: ObservedFacts): Message[] => byId(observed).flatMap(copies => copies.slice(0, 1))

export const duplicatesIn = (observed: ObservedFacts): number => observed.published.length - byId(observed).length

const expectSameIds = ({ committed, published, served }: ObservedFacts): void => {
  const target = new Set(committed.map(({ stored }) => stored.id))
  const actual = new Set(published.map(idOf))
  const lost = [...target].filter(id => !actual.has(id))
  const surplus = [...actual].filter(id => !target.has(id))
  expect({ lost, surplus }, 'in the topics').to.deep.equal({ lost: [], surplus: [] })
  const idsByTenant = Map.groupBy(committed, ({ fact }) => fact.tenantid)
  expect([...served.keys()], 'the tenants with facts').to.include.members([...idsByTenant.keys()])
  for (const [tenant, items] of served) {
    const inOrder = idsByTenant.get(tenant)?.map(({ stored }) => stored.id) ?? []
    expect(
      items.map(({ id }) => id),
      `GET /events of ${tenant}`,
    ).to.deep.equal(inOrder)
  }
}

const TOPICS: Readonly<Record<string, string>> = {
  ord: 'ledger.order.v1',
  inv: 'ledger.invoice.v1',
  pay: 'ledger.payment.v1',
  op: 'ledger.operation.v1',
}

/** The Kafka message that the contract promises for an item of GET /events. */
const messageOf = (item: CloudEvent): Omit<Message, 'partition' | 'offset'> => ({
  topic: TOPICS[item.subject.split('_')[0] ?? ''] ?? 'none',
  key: item.subject,
  headers: {
    ce_id: item.id,
    ce_source: item.source,
    ce_specversion: item.specversion,
    ce_type: item.type,
    ce_subject: item.subject,
    ce_time: item.time,
    ce_dataschema: item.dataschema,
    ce_partitionkey: item.partitionkey,
    ce_sequence: item.sequence,
    ce_position: item.position,
    ce_correlationid: item.correlationid,
    ce_causationid: item.causationid,
    ce_tenantid: item.tenantid,
    'content-type': 'application/json',
    ...(item.traceparent === undefined ? {} : { traceparent: item.traceparent }),
  },
  value: JSON.stringify(item.data),
})

const expectSameBytesAsServed = (observed: ObservedFacts): void => {
  const items = new Map([...observed.served.values()].flat().map(item => [item.id, item]))
  for (const { partition: _, offset: __, ...message } of withoutDuplicates(observed)) {
    const item = items.get(message.headers['ce_id'] ?? '')
    expect(message).to.deep.equal(item && messageOf(item))
  }
}

/** Every byte of a message, with the order of its headers. */
const bytesOf = ({ topic, partition, key, headers, value }: Message): string =>
  JSON.stringify([topic, partition, key, Object.entries(headers), value])

const expectIdenticalDuplicates = (observed: ObservedFacts): void => {
  for (const copies of byId(observed)) expect([...new Set(copies.map(bytesOf))]).to.have.length(1)
}

const expectOrderPerKey = (observed: ObservedFacts): void => {
  for (const [key, messages] of Map.groupBy(withoutDuplicates(observed), message => message.key)) {
    const sequences = messages.map(({ headers }) => headers['ce_sequence'] ?? '')
    expect(sequences, `the order of ${key}`).to.deep.equal(sequences.toSorted())
  }
}

const expectSequencesOfTheStore = ({ committed, published }: ObservedFacts): void => {
  const stored = new Map(committed.map(item => [item.stored.id, item.stored]))
  for (const message of published) {
    const { stream, revision } = stored.get(idOf(message)) ?? {}
    expect(stream?.endsWith(`-${message.key}`), `${message.key} is the aggregate of ${stream}`).to.equal(true)
    expect(message.headers['ce_sequence']).to.match(/^\d{20}$/)
    expect(BigInt(message.headers['ce_sequence'] ?? -1)).to.equal(revision)
  }
}

/** A fault may cause duplicates alone, which are equal byte for byte. */
export const expectNothingButDuplicates = (observed: ObservedFacts): void => {
  expectSameIds(observed)
  expectSequencesOfTheStore(observed)
  expectIdenticalDuplicates(observed)
  expectSameBytesAsServed(observed)
  expectOrderPerKey(observed)
}
