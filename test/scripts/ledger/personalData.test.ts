import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { ledger, tidyUp } from './fixtures.ts'

const TENANT = 'personal-data'
const NAME_ONE = 'Name one text: --customer-reference <text>, --payment-reference <text> or --token <token>.\n'

describe('npm run ledger -- personal-data', () => {
  let client: Client
  let store: EventStore
  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(async () => {
    await store.close()
    await tidyUp()
  })

  const personalData = (...args: readonly string[]) => ledger(['personal-data', ...args, '--tenant', TENANT])
  const created = async (customer_reference: string): Promise<{ id: string; token: string }> => {
    const { body } = await client.post('/orders', { ...anOrder(), customer_reference })
    for await (const { data } of store.readStream(`order-${body.id}`))
      return { id: body.id, token: data['customer_reference'] as string }
    throw new Error('The order has no event.')
  }
  const auditRecords = async (token: string) => {
    const { body } = await client.get(`/audit-records?resource=${token}`)
    return body.items.map((item: Record<string, unknown>) => [item['operation'], item['subject'], item['decision']])
  }

  it('shows and erases a text, once, each recorded for auditors without the text', async () => {
    const text = `Jane Doe ${randomUUID()}`
    const { id, token } = await created(text)
    const shown = JSON.parse((await personalData('show', '--customer-reference', text, '--json')).stdout)
    expect(shown.texts).to.have.length(1)
    expect(shown.texts[0]).to.include({ token, kind: 'customer_reference', text, erased_at: null })
    const erased = await personalData('erase', '--customer-reference', text, '--json')
    expect([erased.code, JSON.parse(erased.stdout)]).to.deep.equal([
      0,
      { tenant: TENANT, erased: [token], erased_before: [] },
    ])
    await eventually(async () => (await client.get(`/orders/${id}`)).body.customer_reference === null)
    const again = await personalData('erase', '--token', token)
    expect([again.code, again.stdout]).to.deep.equal([0, `${token} was erased before.\n`])
    expect((await personalData('show', '--token', token)).stdout).to.match(new RegExp(`^${token}  erased 2\\S+Z\\n$`))
    const records = await eventually(async () => {
      const recordNames = await auditRecords(token)
      return recordNames.length === 4 && recordNames
    })
    const by = userInfo().username
    expect(records).to.deep.equal([
      ['show_personal_data', by, 'granted'],
      ['erase_personal_data', by, 'granted'],
      ['erase_personal_data', by, 'granted'],
      ['show_personal_data', by, 'granted'],
    ])
    const all = await client.get('/audit-records?limit=100')
    expect(all.text).not.to.include(text)
  })

  it('finds no text of another tenant', async () => {
    const text = `John Doe ${randomUUID()}`
    const { token } = await created(text)
    const other = ['--tenant', 'another-personal-data']
    for (const selector of [
      ['--customer-reference', text],
      ['--token', token],
    ])
      for (const command of ['show', 'erase'])
        expect((await ledger(['personal-data', command, ...selector, ...other])).stdout).to.equal(
          'There is no such text.\n',
        )
    expect((await personalData('show', '--token', token)).stdout).to.include(text)
  })

  it('refuses options that name no text, or two', async () => {
    const refused: readonly (readonly [readonly string[], string])[] = [
      [['erase'], NAME_ONE],
      [['erase', '--customer-reference', 'x', '--token', 'y'], NAME_ONE],
      [['show', '--token', 'prs_1'], 'A token is prs_ or prf_ and 26 characters.\n'],
    ]
    for (const [args, reason] of refused) {
      const { code, stderr } = await personalData(...args)
      expect([code, stderr]).to.deep.equal([2, reason])
    }
  })
})
