import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { isErrorCode } from '../../../../src/http/problems/problemCatalogue.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { type Answer, type Client, clientOf } from '../../../support/client.ts'
import { sharedService, type TestService, writtenBy } from '../../../support/service.ts'
import { ANSWER_MAX_MS } from './harness.ts'

/**
 * Sets of bad input whose cases send requests of their own, each with the expected refusal. None of the requests writes an
 * event.
 */

export type Refusal = readonly [status: number, code: string]
export type Case = {
  readonly name: string
  readonly refusal: Refusal
  readonly send: (fixtures: BadInputFixtures) => Promise<Answer>
}

export type BadInputFixtures = {
  readonly service: TestService
  readonly client: Client
  readonly store: EventStore
}

const openFixtures = async (tenant: string): Promise<BadInputFixtures> => {
  const service = await sharedService()
  return {
    service,
    client: clientOf(service.api, await service.token({ tenant })),
    store: openEventStore({ connectionString: service.addresses.event_store }),
  }
}

/**
 * Defines the tests of a set: `least` is the number of cases that it must have. `prepare` creates the resources that the cases
 * need.
 */
export const refusesAll = (
  { set, tenant, least }: { readonly set: string; readonly tenant: string; readonly least: number },
  cases: readonly Case[],
  prepare: (fixtures: BadInputFixtures) => Promise<void> = async () => undefined,
): void => {
  describe(`bad input: ${set}`, () => {
    let fixtures: BadInputFixtures
    let start: bigint
    const answers: Answer[] = []

    before(async () => {
      fixtures = await openFixtures(tenant)
      await prepare(fixtures)
      start = await fixtures.store.head()
    })
    after(() => fixtures.store.close())

    it(`has ${least} distinct cases or more`, () => {
      expect(cases.length).to.be.at.least(least)
      expect(new Set(cases.map(({ name }) => name)).size).to.equal(cases.length)
    })
    for (const { name, refusal, send } of cases)
      it(`${refusal.join(' ')}: ${name}`, async () => {
        const startedAtMs = performance.now()
        const answer = await send(fixtures)
        answers.push(answer)
        expect([answer.status, answer.body?.code], answer.text).to.deep.equal(refusal)
        expect(performance.now() - startedAtMs, 'milliseconds').to.be.lessThan(ANSWER_MAX_MS)
        expect(answer.headers.get('content-type')).to.equal('application/problem+json')
        expect(isErrorCode(answer.body.code)).to.equal(true)
        expect(answer.body.correlation_id).to.equal(answer.headers.get('x-correlation-id'))
      })
    it('appends no event', async () => {
      expect(answers).to.have.length(cases.length)
      expect(await writtenBy(fixtures.store, { after: start, answers })).to.deep.equal([])
    })
  })
}

/** Unusual but valid inputs, which must be accepted. */
export const acceptsAll = (
  { set, tenant }: { readonly set: string; readonly tenant: string },
  cases: readonly { readonly name: string; readonly status: number; readonly send: Case['send'] }[],
  prepare: (fixtures: BadInputFixtures) => Promise<void> = async () => undefined,
): void => {
  describe(`unusual but valid input: ${set}`, () => {
    let fixtures: BadInputFixtures
    before(async () => {
      fixtures = await openFixtures(tenant)
      await prepare(fixtures)
    })
    after(() => fixtures.store.close())
    for (const { name, status, send } of cases)
      it(`${status}: ${name}`, async () => {
        const answer = await send(fixtures)
        expect(answer.status, answer.text).to.equal(status)
      })
  })
}
