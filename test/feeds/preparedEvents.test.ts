import { expect } from 'chai'
import { decode } from '../../src/feeds/decode.ts'
import { preparedEvents } from '../../src/feeds/preparedEvents.ts'
import type { StoredEvent } from '../../src/ports.ts'
import type { MemoryLog } from '../support/memoryStore.ts'
import { fillLog } from './fixtures.ts'

describe('prepared events', () => {
  let log: MemoryLog
  before(async () => {
    log = await fillLog(1)
  })

  const counted = () => {
    const made: string[] = []
    const prepared = preparedEvents((event: StoredEvent) => {
      made.push(event.id)
      return decode(event)
    })
    return { made, ...prepared }
  }

  it('are made once, early or in their batch, and again after they were removed', () => {
    const { made, prepare, resultOf, forget } = counted()
    const [first = expect.fail(), second = expect.fail()] = log.events
    prepare(first)
    expect(made).to.deep.equal([first.id])
    expect(resultOf(first)).to.deep.equal(decode(first))
    expect(resultOf(second)).to.deep.equal(decode(second))
    expect(resultOf(second)).to.equal(resultOf(second))
    expect(made).to.deep.equal([first.id, second.id])
    forget([first])
    resultOf(first)
    resultOf(second)
    expect(made).to.deep.equal([first.id, second.id, first.id])
  })

  it('that cannot be made fail in their batch, not on arrival', () => {
    const { prepare, resultOf } = counted()
    const [event = expect.fail()] = log.events
    const unknown: StoredEvent = { ...event, type: 'OrderVanished' }
    prepare(unknown)
    expect(() => resultOf(unknown)).to.throw('OrderVanished')
  })
})
