import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { type Feed, runFeeds } from '../../src/feeds/feedLoop.ts'
import type { FeedItem } from '../../src/ports.ts'
import { createHeldWorld, type HeldWorld } from '../processes/harness.ts'
import { createSource, databaseThatGrants } from './itemSource.ts'

const GATHERED = 1_200
const LIVE_BATCH_MAX = 500

const eventAt = (position: number): FeedItem => ({
  kind: 'event',
  event: {
    id: randomUUID(),
    stream: `order-${position}`,
    type: 'OrderPlaced',
    revision: 0n,
    position: BigInt(position),
    data: {},
    metadata: {},
    storedAt: '2026-11-23T12:00:00.000Z',
  },
})

const give = (source: ReturnType<typeof createSource>, first: number, count: number): void => {
  for (let position = first; position < first + count; position += 1) source.give(eventAt(position))
}

describe('the batches of a feed', () => {
  let world: HeldWorld
  let source: ReturnType<typeof createSource>
  let stop: AbortController
  let running: Promise<void>
  let batches: number[][]
  let held: PromiseWithResolvers<void>

  const passTime = (): Promise<void> => world.pass(1_000)

  beforeEach(() => {
    world = createHeldWorld()
    source = createSource()
    stop = new AbortController()
    batches = []
    held = Promise.withResolvers()
    const feed: Feed = {
      name: 'counted',
      beginRun: async () => ({
        after: 'start',
        processBatch: async events => {
          batches.push(events.map(({ position }) => Number(position)))
          await held.promise
        },
      }),
    }
    const dependencies = { store: source.store, database: databaseThatGrants(), world, report: () => undefined }
    running = runFeeds('tests', [feed], dependencies, stop.signal)
  })
  afterEach(async () => {
    held.resolve()
    stop.abort()
    await passTime()
    await running
  })

  it('that is live have a bounded number of events, each once and in order, however many have gathered', async () => {
    held.resolve()
    source.give({ kind: 'caught_up' })
    await passTime()
    give(source, 1, GATHERED)
    while (batches.flat().length < GATHERED) await passTime()
    expect(Math.max(...batches.map(({ length }) => length))).to.equal(LIVE_BATCH_MAX)
    expect(batches.flat()).to.deep.equal(Array.from({ length: GATHERED }, (_, index) => index + 1))
  })

  it('that catches up have all events that have come', async () => {
    give(source, 1, GATHERED + 1)
    while (batches.length === 0) await passTime()
    for (let turns = 0; turns < GATHERED; turns += 1) await Promise.resolve()
    await passTime()
    held.resolve()
    while (batches.flat().length <= GATHERED) await passTime()
    expect(Math.max(...batches.map(({ length }) => length))).to.be.above(LIVE_BATCH_MAX)
  })
})
