import { expect } from 'chai'
import { checkVocabulary, neededVocabulary, raisingVocabulary, TooOld } from '../../src/logIdentity/vocabulary.ts'
import type { EventStore } from '../../src/ports.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const ADDED = { 'order/OrderArchived.v1': 2, 'order/OrderCreated.v2': 2, 'order/OrderSplit.v1': 3 }
const eventOf = (type: string, schemaVersion = 1) => ({
  id: crypto.randomUUID(),
  type,
  data: {},
  metadata: { schemaVersion },
})

/** Each process draws different random bytes. */
let seed = 0
const processOn = (store: EventStore): EventStore => raisingVocabulary(store, createVirtualWorld((seed += 1)), ADDED)

describe('the vocabulary that a log needs', () => {
  let log: MemoryLog
  beforeEach(() => {
    log = createMemoryLog()
  })
  const types = (): readonly string[] => log.events.map(({ type }) => type)

  it('stays 1 while a newer build writes what 1.0.0 can read', async () => {
    await processOn(log.open()).append('order-1', [eventOf('OrderCreated')], 'no_stream')
    expect(types()).to.deep.equal(['OrderCreated'])
    await checkVocabulary(log.open(), 1)
  })

  for (const added of [eventOf('OrderArchived'), eventOf('OrderCreated', 2)])
    it(`is raised before the first ${added.type} of version ${added.metadata.schemaVersion}, once`, async () => {
      const store = processOn(log.open())
      await store.append('order-1', [eventOf('OrderCreated'), added], 'no_stream')
      await store.append('order-2', [added], 'no_stream')
      await processOn(log.open()).append('order-3', [added], 'no_stream')
      expect(types()).to.deep.equal(['VocabularyRaised', 'OrderCreated', added.type, added.type, added.type])
      expect(await neededVocabulary(log.open())).to.equal(2)
    })

  it('is that of the newest event, whatever order they are written in', async () => {
    const store = processOn(log.open())
    await store.append('order-1', [eventOf('OrderSplit')], 'no_stream')
    await store.append('order-2', [eventOf('OrderArchived')], 'no_stream')
    expect(await neededVocabulary(log.open())).to.equal(3)
    expect(types().filter(type => type === 'VocabularyRaised')).to.have.lengthOf(1)
  })

  it('is raised by each of several processes that begin at the same time, and written once', async () => {
    const stores = Array.from({ length: 8 }, () => processOn(log.open(() => new Promise(setImmediate))))
    await Promise.all(stores.map((store, n) => store.append(`order-${n}`, [eventOf('OrderArchived')], 'no_stream')))
    expect(types().toSorted()).to.deep.equal([...Array.from({ length: 8 }, () => 'OrderArchived'), 'VocabularyRaised'])
    expect(types()[0]).to.equal('VocabularyRaised')
  })

  it('is refused by an older build, with a sentence that names both and the remedy', async () => {
    await processOn(log.open()).append('order-1', [eventOf('OrderArchived')], 'no_stream')
    const refusal = await rejectionOf(checkVocabulary(log.open(), 1))
    expect(refusal).to.be.instanceOf(TooOld)
    expect(refusal.message).to.match(
      /^This build reads .* vocabulary 1, and the log .* vocabulary 2: start a release .*CHANGELOG\.md/,
    )
    await checkVocabulary(log.open(), 2)
  })
})
