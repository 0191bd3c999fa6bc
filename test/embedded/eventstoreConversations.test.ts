import { EventStoreDBClient } from '@eventstore/db-client'
import { expect } from 'chai'
import { conversations, openConversation } from '../contracts/conversation.ts'
import { type TestNode, startTestNode } from './eventStoreNode.ts'

/** The longest wait for a caught-up message that the real server sent; it is long, for a loaded machine. */
const CAUGHT_UP_MAX_MS = 10_000
/**
 * The wait where the real server sent no caught-up message. The embedded node responds as fast as the log is read; a
 * real one may need longer to search its log.
 */
const QUIET_MS = 300
const OUTSIDE_QUIET_MS = 1500

const compareAll = (address: () => string, quietMs: number): void => {
  let client: EventStoreDBClient
  before(() => {
    client = EventStoreDBClient.connectionString(address())
  })
  after(() => client.dispose())

  for (const [name, steps] of Object.entries(conversations()))
    it(`in the conversation ${name}`, async () => {
      const answer = openConversation(client)
      for (const [n, [step, answered]] of steps.entries()) {
        const waitMaxMs = JSON.stringify(answered).endsWith('"no caught-up"]') ? quietMs : CAUGHT_UP_MAX_MS
        expect(await answer(step, waitMaxMs), `step ${n}: ${JSON.stringify(step)}`).to.deep.equal(answered)
      }
    })
}

describe('the embedded event store answers as a real EventStoreDB did', function () {
  this.timeout(60_000)
  let node: TestNode
  before(async () => {
    node = await startTestNode()
  })
  after(() => node.stop())
  compareAll(() => node.address, QUIET_MS)
})

const outside = process.env['EVENTSTORE_URL']
if (outside !== undefined)
  describe('the store at EVENTSTORE_URL answers as a real EventStoreDB did', function () {
    this.timeout(60_000)
    compareAll(() => outside, OUTSIDE_QUIET_MS)
  })
