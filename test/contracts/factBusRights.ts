import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { FactBus } from '../../src/ports.ts'
import { expectUnavailable, newTopic, rejectionOf } from './factBusFixtures.ts'

export type FactBusRightsHarness = {
  open(): FactBus
  /** The names of all topics of the broker. */
  topics(): Promise<readonly string[]>
}

/** The contract of all fact buses for the deletion of topics and the rights to read them. `grants`: the result of granting a right. */
export const factBusRightsContract = (
  harness: () => FactBusRightsHarness,
  grants: 'granted' | 'not_enforced',
): void => {
  let bus: FactBus
  beforeEach(() => {
    bus = harness().open()
  })
  afterEach(() => bus.close())

  const rightsOf = (topic: string) => ({ topics: [topic, `${topic}.dlq`], groupPrefix: topic })

  it('deletes the existing ones of the topics, and no others', async () => {
    const [kept, ...gone] = [newTopic(), newTopic(), newTopic()]
    await bus.ensureTopics([kept, ...gone].filter(settings => settings !== undefined))
    const names = gone.map(({ topic }) => topic)
    await bus.deleteTopics([`test.${randomUUID()}`, ...names])
    expect(await harness().topics())
      .to.include(kept?.topic)
      .and.not.to.include.members(names)
    await bus.deleteTopics(names)
  })

  it(`returns ${grants} for a right, also when it is granted again`, async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    for (let time = 1; time <= 2; time++)
      expect(await bus.grantReading('alice', rightsOf(settings.topic))).to.equal(grants)
  })

  it('revokes rights, also where there are none', async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    await bus.grantReading('alice', rightsOf(settings.topic))
    for (let time = 1; time <= 2; time++) await bus.revokeReading(rightsOf(settings.topic))
  })

  it('rejects calls after close', async () => {
    const rights = rightsOf(newTopic().topic)
    await bus.close()
    expectUnavailable(await rejectionOf(bus.deleteTopics(rights.topics)), 'none')
    expectUnavailable(await rejectionOf(bus.grantReading('alice', rights)), 'none')
    expectUnavailable(await rejectionOf(bus.revokeReading(rights)), 'none')
  })
}
