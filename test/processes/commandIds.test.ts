import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle } from '../../src/commands/commandHandler.ts'
import { contextOf } from '../../src/processes/processManager.ts'
import { context } from '../commands/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

const LATER_MS = 60_000

describe('an event that a process writes', () => {
  /** The ids of the events that two processes write for one event: one of them at once and again later, another at once. */
  const idsWritten = async (): Promise<readonly (string | undefined)[]> => {
    const world = createVirtualWorld()
    const cause = createLedger(createMemoryLog().open(), world)
    await handle(cause, orderEntity, id('ord'), {
      command: createOrder,
      context: context(),
      load: 'assume_empty' as const,
    })
    const recorded = await cause.aggregates.first(orderEntity, id('ord'))
    if (recorded === undefined) throw new Error('The order has no event.')
    const written: (string | undefined)[] = []
    for (const [process, afterMs] of [
      ['one', 0],
      ['one', LATER_MS],
      ['another', 0],
    ] as const) {
      world.pass(afterMs)
      const log = createMemoryLog()
      const command = {
        command: createOrder,
        context: contextOf(process, recorded, world),
        load: 'assume_empty' as const,
      }
      await handle(createLedger(log.open(), world), orderEntity, id('ord', 2), command)
      written.push(log.events[0]?.id)
    }
    return written
  }

  it('has the same id when it is written again, and another id than that of another process', async () => {
    const [first, again, another] = await idsWritten()
    expect(first).to.be.a('string')
    expect(again).to.equal(first)
    expect(another).not.to.equal(first)
  })
})
