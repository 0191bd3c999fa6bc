import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { FactBus } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'
import { expectUnavailable, newTopic } from './factBusFixtures.ts'

export type FactBusRightsHarness = {
  open(): FactBus
  /** The names of all topics of the broker. */
  topics(): Promise<readonly string[]>
}

/** The contract of all fact buses for permissions and the deletion of topics. `grants`: the result of granting a permission. */
export const factBusRightsContract = (
  harness: () => FactBusRightsHarness,
  grants: 'granted' | 'not_enforced',
): void => {
  let bus: FactBus
  beforeEach(() => {
    bus = harness().open()
  })
  afterEach(() => bus.close())

  const permissionsOn = (topic: string) => ({ topics: [topic, `${topic}.dlq`], groupPrefix: topic })

  it('deletes those of the given topics that exist, and no others', async () => {
    const [kept, ...gone] = [newTopic(), newTopic(), newTopic()]
    await bus.ensureTopics([kept, ...gone].filter(settings => settings !== undefined))
    const names = gone.map(({ topic }) => topic)
    await bus.deleteTopics([`test.${randomUUID()}`, ...names])
    expect(await harness().topics())
      .to.include(kept?.topic)
      .and.not.to.include.members(names)
    await bus.deleteTopics(names)
  })

  it(`returns ${grants} for a permission, also when it is granted again`, async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    for (let time = 1; time <= 2; time++)
      expect(await bus.grantReading('alice', permissionsOn(settings.topic))).to.equal(grants)
  })

  it('revokes permissions, also where there are none', async () => {
    const settings = newTopic()
    await bus.ensureTopics([settings])
    await bus.grantReading('alice', permissionsOn(settings.topic))
    for (let time = 1; time <= 2; time++) await bus.revokeReading(permissionsOn(settings.topic))
  })

  it('rejects calls after close', async () => {
    const permissions = permissionsOn(newTopic().topic)
    await bus.close()
    expectUnavailable(await rejectionOf(bus.deleteTopics(permissions.topics)), 'none')
    expectUnavailable(await rejectionOf(bus.grantReading('alice', permissions)), 'none')
    expectUnavailable(await rejectionOf(bus.revokeReading(permissions)), 'none')
  })
}
