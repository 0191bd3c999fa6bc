import { expect } from 'chai'
import { type Client, clientOf, inParallel, newKey } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import { sharedService } from '../../../support/service.ts'
import { caller, startVariant, type Variant } from '../../../support/serviceVariants.ts'

const TENANT = 'subscription-quota'
const MAX = 5
const REQUEST = 20

describe('the number of subscriptions of a tenant', () => {
  let variant: Variant
  let client: Client
  const body = { types: ['invoice.paid'], start: 'now' }
  const create = (headers: Readonly<Record<string, string>> = {}) => client.post('/subscriptions', body, headers)
  const listed = async (): Promise<{ id: string }[]> => (await client.get('/subscriptions?limit=100')).body.items

  before(async () => {
    const service = await sharedService()
    // A separate tenant, because an unanswered creation of another test keeps its slot of the quota for a minute.
    variant = await startVariant(service, {
      authenticate: async () => ({ ...caller, tenant: TENANT }),
      services: usual => ({ ...usual, subscriptionsPerTenantMax: MAX }),
    })
    client = clientOf(variant.api, 'any token')
  })
  after(() => variant.close())

  it('does not exceed its limit with concurrent requests, before the read model has them', async () => {
    const answers = await inParallel(REQUEST, Array.from({ length: REQUEST }), () => create())
    const created = answers.filter(({ status }) => status === 201)
    expect(created).to.have.length(MAX)
    for (const { body: refused, headers } of answers.filter(({ status }) => status !== 201)) {
      expect(refused).to.include({ status: 429, code: 'quota_exceeded' })
      expect(refused.detail).to.match(/^A tenant may have \d+ subscriptions/)
      expect(headers.get('retry-after')).to.equal('60')
    }
    await eventually(async () => (await listed()).length === MAX)
    expect((await create()).status, 'and afterwards').to.equal(429)
  })

  it('is smaller after a deletion, and does not grow when a request is repeated', async () => {
    const [newest] = await listed()
    const gone = await client.request('DELETE', `/subscriptions/${newest?.id}`)
    expect(gone.status).to.equal(204)
    const key = { 'idempotency-key': newKey() }
    const created = await eventually(async () => {
      const answer = await create(key)
      return answer.status === 201 && answer
    })
    const again = await create(key)
    expect([again.status, again.text]).to.deep.equal([201, created.text])
    expect((await create()).status).to.equal(429)
  })
})
