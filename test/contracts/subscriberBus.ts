import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { SubscriberBus } from '../../src/ports.ts'
import { expectUnavailable, newTopic, rejectionOf } from './factBusKit.ts'

export type SubscriberBusStage = {
  open(): SubscriberBus
  /** The names of all topics, from beyond the port. */
  topics(): Promise<readonly string[]>
}

/** What a fact bus does with topics that come and go. `grants`: what it says where it is asked for rights. */
export const subscriberBusContract = (stage: () => SubscriberBusStage, grants: 'granted' | 'not_enforced'): void => {
  let bus: SubscriberBus
  beforeEach(() => {
    bus = stage().open()
  })
  afterEach(() => bus.close())

  const rightsOf = (topic: string) => ({ topics: [topic, `${topic}.dlq`], groupPrefix: topic })

  it('deletes topics, those that are there, and no others', async () => {
    const [kept, ...gone] = [newTopic(), newTopic(), newTopic()]
    await bus.ensureTopics([kept, ...gone].filter(settings => settings !== undefined))
    const names = gone.map(({ topic }) => topic)
    await bus.deleteTopics([`test.${randomUUID()}`, ...names])
    expect(await stage().topics())
      .to.include(kept?.topic)
      .and.not.to.include.members(names)
    await bus.deleteTopics(names)
  })

  it(`says of a right that it is ${grants}, as often as it is asked`, async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    for (let time = 1; time <= 2; time++)
      expect(await bus.grantReading('alice', rightsOf(settings.topic))).to.equal(grants)
  })

  it('takes rights away, also where there are none', async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    await bus.grantReading('alice', rightsOf(settings.topic))
    for (let time = 1; time <= 2; time++) await bus.revokeReading(rightsOf(settings.topic))
  })

  it('does nothing more when it is closed', async () => {
    const rights = rightsOf(newTopic().topic)
    await bus.close()
    expectUnavailable(await rejectionOf(bus.deleteTopics(rights.topics)), 'none')
    expectUnavailable(await rejectionOf(bus.grantReading('alice', rights)), 'none')
    expectUnavailable(await rejectionOf(bus.revokeReading(rights)), 'none')
  })
}
