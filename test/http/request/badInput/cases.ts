import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { isErrorCode } from '../../../../src/http/response/problemCatalogue.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { type Answer, type Client, clientOf } from '../../../support/client.ts'
import { quietHead, sharedService, type TestService, writtenSince } from '../../../support/service.ts'

/**
 * Sets of bad input whose cases send what they like: each says what it must be told, and after a whole set nothing may
 * have been written into the books.
 */

export type Told = readonly [status: number, code: string]
export type Case = {
  readonly name: string
  readonly told: Told
  readonly send: (stage: BadInputStage) => Promise<Answer>
}

export type BadInputStage = {
  readonly service: TestService
  readonly client: Client
  readonly store: EventStore
}

/** Generous, since tests share the machine. */
const ANSWER_MAX_MS = 8_000

const openStage = async (tenant: string): Promise<BadInputStage> => {
  const service = await sharedService()
  return {
    service,
    client: clientOf(service.api, await service.token({ tenant })),
    store: openEventStore({ connectionString: service.addresses.event_store }),
  }
}

/**
 * Defines the tests of a set: `least` is the number of cases that it must have. `prepare` makes what the cases need and
 * runs before the position of the store is taken.
 */
export const refusesAll = (
  { set, tenant, least }: { readonly set: string; readonly tenant: string; readonly least: number },
  cases: readonly Case[],
  prepare: (stage: BadInputStage) => Promise<void> = async () => undefined,
): void => {
  describe(`bad input: ${set}`, function () {
    this.timeout(60_000)
    let stage: BadInputStage
    let position: bigint

    before(async () => {
      stage = await openStage(tenant)
      await prepare(stage)
      position = await quietHead(stage.store)
    })
    after(() => stage.store.close())

    it(`has ${least} cases and more, each of them another`, () => {
      expect(cases.length).to.be.at.least(least)
      expect(new Set(cases.map(({ name }) => name)).size).to.equal(cases.length)
    })
    for (const { name, told, send } of cases)
      it(`${told.join(' ')}: ${name}`, async () => {
        const from = performance.now()
        const answer = await send(stage)
        expect([answer.status, answer.body?.code], answer.text).to.deep.equal(told)
        expect(performance.now() - from).to.be.lessThan(ANSWER_MAX_MS)
        expect(answer.headers.get('content-type')).to.equal('application/problem+json')
        expect(isErrorCode(answer.body.code)).to.equal(true)
        expect(answer.body.correlation_id).to.equal(answer.headers.get('x-correlation-id'))
      })
    it('writes nothing into the books, and spoils no object', async () => {
      expect(await writtenSince(stage.store, position)).to.deep.equal([])
      expect(Object.keys(Object.prototype)).to.deep.equal([])
    })
  })
}

/** Odd and right: what must be taken as it is. */
export const takesAll = (
  { set, tenant }: { readonly set: string; readonly tenant: string },
  cases: readonly { readonly name: string; readonly status: number; readonly send: Case['send'] }[],
  prepare: (stage: BadInputStage) => Promise<void> = async () => undefined,
): void => {
  describe(`odd input that is right: ${set}`, function () {
    this.timeout(60_000)
    let stage: BadInputStage
    before(async () => {
      stage = await openStage(tenant)
      await prepare(stage)
    })
    after(() => stage.store.close())
    for (const { name, status, send } of cases)
      it(`${status}: ${name}`, async () => {
        const answer = await send(stage)
        expect(answer.status, answer.text).to.equal(status)
      })
  })
}
