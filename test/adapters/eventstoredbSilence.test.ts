import { Readable } from 'node:stream'
import { expect } from 'chai'
import type { Answer } from '../../src/adapters/eventstoredb/answers.ts'
import { ResponseTimeout } from '../../src/adapters/eventstoredb/errors.ts'
import { received } from '../../src/adapters/eventstoredb/read.ts'

const UNCONFIRMED_MS = 40
const CONFIRMED_MS = 400

/** A call whose answers the test provides, and which then stays open. */
const callWith = (...answers: readonly Answer['kind'][]) => {
  const call = new Readable({ objectMode: true, read: () => undefined })
  for (const kind of answers) call.push([{ kind }])
  return Object.assign(call, { cancel: () => void call.destroy() })
}

/** The limit of the silence that ends the call. */
const silenceOf = async (...answers: readonly Answer['kind'][]): Promise<number> => {
  let confirmed = false
  const timeoutMs = (): number => (confirmed ? CONFIRMED_MS : UNCONFIRMED_MS)
  try {
    for await (const batch of received(callWith(...answers), { timeoutMs }))
      confirmed ||= batch.some(({ kind }) => kind === 'confirmed')
    return expect.fail('The call ended without an error.')
  } catch (error) {
    if (!(error instanceof ResponseTimeout)) throw error
    return error.limitMs
  }
}

describe('EventStoreDB adapter, when a call is silent', () => {
  it('waits for the confirmation of a subscription for the shorter limit', async () => {
    expect(await silenceOf()).to.equal(UNCONFIRMED_MS)
  })

  it('waits for the longer limit after the confirmation, also without further events', async () => {
    expect(await silenceOf('confirmed')).to.equal(CONFIRMED_MS)
    expect(await silenceOf('confirmed', 'caught_up')).to.equal(CONFIRMED_MS)
  })
})
