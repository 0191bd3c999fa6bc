import { expect } from 'chai'
import { createDenials, type Denial } from '../../src/commands/denials.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { type EventStore, Unavailable, type World } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { id } from '../streams/samples.ts'
import { context } from './fixtures.ts'

describe('refusals of one caller', () => {
  /** Denials on a store that `wrong` may replace in part. A window of the aggregation ends when the test calls `endWindow`. */
  const start = (wrong: (real: EventStore) => Partial<EventStore> = () => ({})) => {
    const real = createMemoryLog().open()
    const appended: { resource: unknown; count: unknown }[] = []
    const store: EventStore = {
      ...real,
      append: async (stream, events, expected) => {
        const outcome = await (wrong(real).append ?? real.append)(stream, events, expected)
        for (const { data } of events) appended.push({ resource: data['resource'], count: data['count'] ?? 1 })
        return outcome
      },
    }
    let end = Promise.withResolvers<void>()
    const endWindow = async (): Promise<void> => {
      const { resolve } = end
      end = Promise.withResolvers<void>()
      resolve()
      for (let loop = 0; loop < 50; loop++) await new Promise(done => setImmediate(done))
    }
    const failures: unknown[] = []
    const sleep: World['sleep'] = (_timeMs, signal) =>
      signal?.aborted
        ? Promise.resolve()
        : Promise.race([end.promise, new Promise<void>(done => signal?.addEventListener('abort', () => done()))])
    const ledger = createLedger(store, { ...realWorld(), sleep })
    return { appended, endWindow, failures, denials: createDenials(ledger, error => failures.push(error)) }
  }
  const denial = (n = 1): Denial => ({
    operation: 'approve_invoice',
    resource: id('inv', n),
    check: 'scope',
    code: 'insufficient_scope',
  })

  const EACH = 20
  const many = async (denials: ReturnType<typeof createDenials>, count: number, of = (_: number) => denial()) => {
    for (let n = 1; n <= count; n++) await denials.record(of(n), context())
  }
  const unavailable = () =>
    Promise.reject(new Unavailable('event store', { effect: 'none', cause: new Error('planted') }))

  it('have a record each at once; those beyond twenty share one record with their number', async () => {
    const { appended, endWindow, denials } = start()
    await many(denials, 500)
    expect(appended).to.deep.equal(Array.from({ length: EACH }, () => ({ resource: id('inv'), count: 1 })))
    await endWindow()
    expect(appended.slice(EACH)).to.deep.equal([{ resource: id('inv'), count: 500 - EACH }])
  })

  it('share one record in each window while they continue, and have a record each after a window without any', async () => {
    const { appended, endWindow, denials } = start()
    for (let window = 0; window < 3; window++) {
      await many(denials, 100)
      await endWindow()
    }
    expect(appended.slice(EACH).map(({ count }) => count)).to.deep.equal([100 - EACH, 100, 100])
    await endWindow()
    await many(denials, 2)
    expect(appended.slice(EACH + 3).map(({ count }) => count)).to.deep.equal([1, 1])
  })

  it('name no resource where several are counted together', async () => {
    const { appended, endWindow, denials } = start()
    await many(denials, 500, denial)
    await endWindow()
    expect(appended.slice(EACH)).to.deep.equal([{ resource: null, count: 500 - EACH }])
  })

  it('do not hide those of another caller, nor those of another operation', async () => {
    const { appended, endWindow, denials } = start()
    await many(denials, 50)
    await denials.record(denial(), context({ subject: 'another' }))
    expect(appended).to.have.length(EACH + 1)
    await denials.record({ ...denial(), operation: 'void_invoice' }, context())
    await endWindow()
    expect(appended.slice(EACH + 1).map(({ count }) => count)).to.deep.equal([30, 1])
  })

  it('are rejected when they cannot be recorded', async () => {
    const { denials } = start(() => ({ append: unavailable }))
    const outcomes = await Promise.allSettled([1, 2].map(() => denials.record(denial(), context())))
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected'])
  })

  it('keep their count while it cannot be recorded, and record it at the end of the process', async () => {
    let isUnavailable = false
    const { appended, endWindow, denials, failures } = start(real => ({
      append: (...args) => (isUnavailable ? unavailable() : real.append(...args)),
    }))
    await many(denials, EACH + 9)
    isUnavailable = true
    await endWindow()
    expect([appended.length, failures.length]).to.deep.equal([EACH, 1])
    isUnavailable = false
    await many(denials, 1)
    await denials.close()
    expect(appended.slice(EACH).map(({ count }) => count)).to.deep.equal([10])
  })

  it('are counted also at the moment when their caller is forgotten', async () => {
    const MICROTASKS = 12
    for (let after = 0; after < MICROTASKS; after++) {
      const { appended, endWindow, denials } = start()
      await many(denials, EACH + 1)
      await endWindow()
      const ended = endWindow()
      for (let microtask = 0; microtask < after; microtask++) await Promise.resolve()
      await many(denials, 1)
      await ended
      await denials.close()
      const counts = appended.map(({ count }) => Number(count))
      expect(
        counts.reduce((sum, count) => sum + count, 0),
        `${after} microtasks later`,
      ).to.equal(EACH + 2)
    }
  })

  it('are recorded before the end of the process, also where their window has just ended', async () => {
    const slow = Promise.withResolvers<void>()
    let isSlow = false
    const { appended, endWindow, denials } = start(real => ({
      append: async (...args) => {
        if (isSlow) await slow.promise
        return real.append(...args)
      },
    }))
    await many(denials, EACH + 9)
    isSlow = true
    await endWindow()
    let isClosed = false
    const closing = denials.close().then(() => {
      isClosed = true
    })
    for (let loop = 0; loop < 50; loop++) await new Promise(done => setImmediate(done))
    expect(isClosed, 'closed before the count was recorded').to.equal(false)
    slow.resolve()
    await closing
    expect(appended.slice(EACH).map(({ count }) => count)).to.deep.equal([9])
  })
})
