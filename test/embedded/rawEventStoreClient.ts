/** The raw client and a node, shared by the tests of the embedded event store's protocol. */

import { randomUUID } from 'node:crypto'
import { EventStoreDBClient, type AppendExpectedRevision, type ResolvedEvent, jsonEvent } from '@eventstore/db-client'
import { expect } from 'chai'
import { type TestNode, startTestNode } from './eventStoreNode.ts'

export type Failure = Error & { readonly type: string; readonly actualVersion?: unknown; readonly streamName?: string }
type Recorded = NonNullable<ResolvedEvent['event']>

export const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(failure).to.be.instanceOf(Error)
  return failure as Failure
}

export const made = (n = 0, type = 'Made') => jsonEvent({ id: randomUUID(), type, data: { n } })
export const newStream = (category = 'raw'): string => `${category}-${randomUUID()}`

export const collect = async (reading: AsyncIterable<{ readonly event?: Recorded }>): Promise<Recorded[]> => {
  const collected: Recorded[] = []
  for await (const { event } of reading) if (event !== undefined) collected.push(event)
  return collected
}

export type Raw = {
  readonly node: TestNode
  readonly client: EventStoreDBClient
  append(
    stream: string,
    count: number,
    expected?: AppendExpectedRevision,
  ): ReturnType<EventStoreDBClient['appendToStream']>
  revisionsOf(stream: string, options?: object): Promise<number[]>
  stop(): Promise<void>
}

export const startRaw = async (options: { hasOwnPostgres?: boolean } = {}): Promise<Raw> => {
  const node = await startTestNode(options)
  const client = EventStoreDBClient.connectionString(node.address)
  return {
    node,
    client,
    append: (stream, count, expectedRevision = 'any') => {
      const events = Array.from({ length: count }, (_, n) => made(n))
      return client.appendToStream(stream, events, { expectedRevision })
    },
    revisionsOf: async (stream, options = {}) =>
      (await collect(client.readStream(stream, options))).map(({ revision }) => Number(revision)),
    stop: async () => {
      await client.dispose()
      await node.stop()
    },
  }
}
