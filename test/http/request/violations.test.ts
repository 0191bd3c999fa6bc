import { expect } from 'chai'
import { anOrder, clientOf, type Client } from '../../support/client.ts'
import { holdsInOneOf } from '../../support/comparedTimes.ts'
import { sharedService } from '../../support/service.ts'
import { send } from '../../support/rawHttp.ts'

/**
 * The response to a request with any number of violations has a bounded size, and its cost is linear in the size of the
 * request.
 */

const LISTED_MAX = 20
const ANSWER_MAX_CHARS = 32 * 1024
const QUERY_CHARS = 8_000
const ROUNDS = 7
const TIMES_MAX = 12

describe('the violations of a request', () => {
  let api: string
  let client: Client
  before(async () => {
    const service = await sharedService()
    api = service.api
    client = clientOf(api, await service.token({ tenant: 'violations' }))
  })

  const names = (count: number): string =>
    Array.from({ length: count }, (_, index) => index.toString(36))
      .join('&')
      .slice(0, QUERY_CHARS)

  for (const path of ['/livez', '/orders'])
    it(`are at most ${LISTED_MAX} of a query of ${path}, with their total`, async () => {
      const { status, body } = await client.get(`${path}?${names(1_000)}`)
      expect([status, body.code, body.errors.length]).to.deep.equal([400, 'unknown_parameter', LISTED_MAX])
      expect(body.detail).to.match(/There are 1000 violations; the first 20 are listed\.$/)
    })

  it(`are at most ${LISTED_MAX} of a body, each of bounded length`, async () => {
    const members = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`${'~'.repeat(60)}${index}`, 1]))
    const { status, body, text } = await client.post('/orders', { ...anOrder(), metadata: members })
    expect([status, body.code, body.errors.length]).to.deep.equal([400, 'validation_failed', LISTED_MAX])
    expect(body.detail).to.match(/There are 9\d\d violations/)
    expect(text.length).to.be.below(ANSWER_MAX_CHARS)
    const one = await client.post('/orders', { ...anOrder(), ['/'.repeat(60_000)]: 1 })
    expect([one.status, one.body.errors.length]).to.deep.equal([400, 1])
    expect(one.text.length).to.be.below(ANSWER_MAX_CHARS)
  })

  it('are all listed, without their total, when they are few', async () => {
    const { body } = await client.get('/orders?a&b&b')
    expect(body.errors.map(({ code }: { code: string }) => code)).to.deep.equal([
      'unknown_parameter',
      'repeated_parameter',
    ])
    expect(body.detail).not.to.match(/There are/)
  })

  it(`take at most ${TIMES_MAX} times as long among many short names as in one long one`, async () => {
    const many = names(QUERY_CHARS)
    const one = 'x'.repeat(many.length)
    const tookMs = async (query: string): Promise<number> => {
      const startedAtMs = performance.now()
      await send(api, { method: 'GET', path: `/livez?${query}`, headers: [] })
      return performance.now() - startedAtMs
    }
    const best = { many: Infinity, one: Infinity }
    await holdsInOneOf(async () => {
      for (let round = 0; round < ROUNDS; round++) {
        best.one = Math.min(best.one, await tookMs(one))
        best.many = Math.min(best.many, await tookMs(many))
      }
      expect(best.many / best.one, JSON.stringify(best)).to.be.below(TIMES_MAX)
    })
  })
})
