import { expect } from 'chai'
import { routes } from '../../../src/http/index.ts'
import { KEYED_OPERATIONS } from '../../../src/commands/idempotency/keyStatus.ts'
import { type Client, clientOf, isReplay, recordOf } from '../../support/client.ts'
import { writtenBy } from '../../support/service.ts'
import { examples } from '../requestExamples.ts'
import { usePersonalTexts } from './personalTextFixtures.ts'

/** Requests with a key while Postgres does not answer: the answer of a used key is in the log. */

describe('while Postgres does not answer, a request with a key', () => {
  const { parts, startProcess } = usePersonalTexts('used-keys', 'customer_reference')
  let client: Client
  /** Another process, which has seen none of the first requests. */
  let elsewhere: Client
  before(async () => {
    client = clientOf((await startProcess()).api)
    elsewhere = clientOf((await startProcess()).api)
  })

  const exampleOf = async (operationId: string) => {
    const { path, body = {}, headers = {} } = (await examples[operationId]?.(client)) ?? { path: '' }
    return { path, body, headers, send: (by: Client) => by.post(path, body, headers) }
  }

  it('is one of every operation that the table of keyed operations lists', () => {
    const keyed = routes.filter(({ idempotencyKey }) => idempotencyKey).map(({ operationId }) => operationId)
    expect(keyed).to.have.members(KEYED_OPERATIONS)
  })

  for (const operationId of KEYED_OPERATIONS) {
    it(`gets the answer of the first one if ${operationId} was executed under its key`, async () => {
      const { path, body, headers, send } = await exampleOf(operationId)
      const first = await send(client)
      expect(first.status, first.text).to.be.within(200, 299)
      parts.switched.state.isDown = true
      for (const by of [client, elsewhere]) {
        const repeated = await send(by)
        expect(recordOf(repeated)).to.deep.equal(recordOf(first))
        expect(isReplay(repeated)).to.equal(true)
      }
      const other = { ...body, [Object.keys(body)[0] ?? 'overlap_seconds']: OTHER[operationId] ?? 60 }
      const reused = await elsewhere.post(path, other, headers)
      expect([reused.status, reused.body.code], reused.text).to.deep.equal([422, 'idempotency_key_reused'])
    })

    it(`is refused without an effect, or executed, if its key is new to ${operationId}`, async () => {
      const { send } = await exampleOf(operationId)
      const after = await parts.store.head()
      parts.switched.state.isDown = true
      const answer = await send(elsewhere)
      parts.switched.state.isDown = false
      if (answer.status < 300) return
      expect(answer.body).to.include({ status: 503, code: 'dependency_unavailable' })
      expect(await writtenBy(parts.store, { after, answers: [answer] })).to.deep.equal([])
      expect(isReplay(await send(client))).to.equal(false)
    })
  }
})

/** Another value of the first member of each operation's example. */
const OTHER: Readonly<Record<string, unknown>> = {
  create_order: 'EUR',
  raise_invoice: 'ord_00000000000000000000000000',
  create_payment: 'inv_00000000000000000000000000',
  refund_payment: 2,
  create_export: 'invoices',
  issue_api_key: 'hourly',
  create_subscription: ['invoice.paid'],
  replay_subscription: { position: '7' },
}
