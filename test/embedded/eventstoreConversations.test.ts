import { EventStoreDBClient } from '@eventstore/db-client'
import { expect } from 'chai'
import { conversations, openConversation } from '../contracts/conversation.ts'
import { type TestNode, startTestNode } from './eventStoreNode.ts'

const compareAll = (address: () => string): void => {
  let client: EventStoreDBClient
  before(() => {
    client = EventStoreDBClient.connectionString(address())
  })
  after(() => client.dispose())

  for (const [name, steps] of Object.entries(conversations()))
    it(`in the conversation ${name}`, async () => {
      const answer = openConversation(client)
      for (const [n, [step, answered]] of steps.entries()) {
        const isCaughtUpExpected = !JSON.stringify(answered).endsWith('"no caught-up"]')
        expect(await answer(step, isCaughtUpExpected), `step ${n}: ${JSON.stringify(step)}`).to.deep.equal(answered)
      }
    })
}

describe('the embedded event store answers as a real EventStoreDB did', () => {
  let node: TestNode
  before(async () => {
    node = await startTestNode()
  })
  after(() => node.stop())
  compareAll(() => node.address)
})

const outside = process.env['EVENTSTORE_URL']
if (outside !== undefined)
  describe('the store at EVENTSTORE_URL answers as a real EventStoreDB did', () => {
    compareAll(() => outside)
  })
