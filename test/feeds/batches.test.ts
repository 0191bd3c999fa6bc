import { expect } from 'chai'
import fc from 'fast-check'
import { batches } from '../../src/feeds/batches.ts'
import { rejectionOf } from '../support/rejection.ts'

const nextLoop = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A source that the test fills, which counts the items that were taken from it. */
const createSource = <T>() => {
  const waiting: (() => void)[] = []
  const items: T[] = []
  const seen = { taken: 0, closed: false }
  let failure: Error | undefined
  let ended = false
  const wake = (): void => {
    for (const resume of waiting.splice(0)) resume()
  }
  async function* source(): AsyncGenerator<T> {
    try {
      for (;;) {
        const [item] = items.splice(0, 1)
        if (item !== undefined) {
          seen.taken += 1
          yield item
        } else if (failure !== undefined) throw failure
        else if (ended) return
        else await new Promise<void>(resolve => waiting.push(resolve))
      }
    } finally {
      seen.closed = true
    }
  }
  return {
    source: source(),
    seen,
    push: (...more: T[]) => {
      items.push(...more)
      wake()
    },
    end: () => {
      ended = true
      wake()
    },
    fail: (error: Error) => {
      failure = error
      wake()
    },
  }
}

/** Readers that let the source be read ahead at once, in the middle of the batch, and not before its end. */
const LATER: readonly ((readAhead: () => void) => void)[] = [
  readAhead => readAhead(),
  readAhead => void nextLoop().then(readAhead),
  () => undefined,
]

describe('batches', () => {
  it('have every item once, in order, and never more than the size, at any speed of source and reader', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer(), { maxLength: 60 }),
        fc.integer({ min: 1, max: 10 }),
        fc.infiniteStream(fc.nat({ max: 3 })),
        fc.constantFrom(undefined, ...LATER),
        async (items, size, pauses, later) => {
          const pause = async (): Promise<void> => {
            for (let left = pauses.next().value; left > 0; left -= 1) await nextLoop()
          }
          async function* source() {
            for (const item of items) {
              await pause()
              yield item
            }
          }
          const got: number[][] = []
          for await (const batch of batches(source(), size, undefined, later)) {
            got.push(batch)
            await pause()
          }
          expect(got.flat()).to.deep.equal(items)
          for (const batch of got) expect(batch.length).to.be.within(1, size)
        },
      ),
      { numRuns: 60 },
    ))

  it('do not wait to be full', async () => {
    const { source, push, end } = createSource<number>()
    const reading = batches(source, 100)
    push(1)
    expect((await reading.next()).value).to.deep.equal([1])
    push(2)
    expect((await reading.next()).value).to.deep.equal([2])
    end()
    expect((await reading.next()).done).to.equal(true)
  })

  it('are full when enough items have come in the meantime', async () => {
    const { source, push, end } = createSource<number>()
    const reading = batches(source, 3)
    push(1)
    await reading.next()
    push(2, 3, 4, 5, 6)
    await nextLoop()
    expect((await reading.next()).value).to.deep.equal([2, 3, 4])
    await nextLoop()
    expect((await reading.next()).value).to.deep.equal([5, 6])
    end()
    await reading.next()
  })

  it('are read no further ahead than one batch', async () => {
    const { source, push, seen, end } = createSource<number>()
    const reading = batches(source, 4)
    push(...Array.from({ length: 100 }, (_, n) => n))
    await reading.next()
    for (let loops = 0; loops < 20; loops += 1) await nextLoop()
    expect(seen.taken).to.be.at.most(9)
    end()
    await reading.return(undefined)
  })

  it('are read ahead from the call of the reader on, and with the next batch at the latest', async () => {
    const { source, push, seen, end } = createSource<number>()
    const ahead: (() => void)[] = []
    const reading = batches(source, 4, undefined, readAhead => void ahead.push(readAhead))
    const loops = async (): Promise<void> => {
      for (let left = 20; left > 0; left -= 1) await nextLoop()
    }
    push(...Array.from({ length: 100 }, (_, n) => n))
    expect((await reading.next()).value).to.deep.equal([0])
    await loops()
    expect((await reading.next()).value).to.deep.equal([1, 2, 3, 4])
    await loops()
    expect(seen.taken).to.equal(5)
    ahead.at(-1)?.()
    await loops()
    expect(seen.taken).to.equal(9)
    expect((await reading.next()).value).to.deep.equal([5, 6, 7, 8])
    await loops()
    expect(seen.taken).to.equal(9)
    expect(((await reading.next()).value as number[])[0]).to.equal(9)
    end()
    await reading.return(undefined)
  })

  it('that are read ahead later are read in turns, between which other work is done', async () => {
    const { source, push, end } = createSource<number>()
    const reading = batches(source, 2_000, undefined, () => undefined)
    push(...Array.from({ length: 1_000 }, (_, n) => n))
    const sizes: number[] = []
    for (let read = 0; read < 1_000; read += sizes.at(-1) ?? 0)
      sizes.push(((await reading.next()).value as number[]).length)
    expect(Math.max(...sizes)).to.be.at.most(256)
    end()
    await reading.next()
  })

  it('have the items before an error, which is thrown after them', async () => {
    const { source, push, fail } = createSource<number>()
    const error = new Error('gone')
    push(1, 2)
    fail(error)
    const got: number[] = []
    const reading = (async () => {
      for await (const batch of batches(source, 10)) got.push(...batch)
    })()
    expect(await rejectionOf(reading)).to.equal(error)
    expect(got).to.deep.equal([1, 2])
  })

  it('that are no longer read close their source with its next item, also when it waits for space', async () => {
    for (const size of [1, 10]) {
      const { source, push, seen } = createSource<number>()
      const reading = batches(source, size)
      push(1, 2, 3)
      await reading.next()
      await nextLoop()
      await reading.return(undefined)
      push(4)
      for (let loops = 0; loops < 5; loops += 1) await nextLoop()
      expect(seen.closed, `batches of ${size}`).to.equal(true)
      expect(seen.taken).to.be.at.most(4)
    }
  })

  it('that are no longer read ignore a failure of their source', async () => {
    const { source, push, fail, seen } = createSource<number>()
    const reading = batches(source, 10)
    push(1)
    await reading.next()
    await reading.return(undefined)
    fail(new Error('too late'))
    for (let loops = 0; loops < 5; loops += 1) await nextLoop()
    expect(seen.closed).to.equal(true)
  })

  it('of an empty source are none', async () => {
    const { source, end } = createSource<number>()
    end()
    expect((await batches(source, 5).next()).done).to.equal(true)
  })
})
