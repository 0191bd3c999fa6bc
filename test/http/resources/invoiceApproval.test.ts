import { expect } from 'chai'
import { readConfig } from '../../../src/settings/config.ts'
import type { Principal } from '../../../src/identity/principal.ts'
import { anOrder, type Client, clientOf } from '../../support/client.ts'
import { type ServiceProcess, sharedService, startProcess, temporaryDirectory } from '../../support/service.ts'
import { removeFolder } from '../../support/folders.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'

const drafted = async (client: Client, amount: number, currency = 'USD') => {
  const order = await client.post('/orders', { ...anOrder(amount), currency })
  const invoice = await client.post('/invoices', { order_id: order.body.id })
  return { path: `/invoices/${invoice.body.id}:approve`, ifMatch: { 'if-match': invoice.headers.get('etag') ?? '' } }
}

describe('approval by four eyes', () => {
  let service: ServiceProcess
  let dataDir: string
  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir, { APPROVAL_FOUR_EYES: 'acme=USD:1000' })
  })
  after(async () => {
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  it('requires another subject than the creator from the amount on, and permits the creator below it', async () => {
    const ann = clientOf(service.api, await service.token({ subject: 'ann' }))
    const bob = clientOf(service.api, await service.token({ subject: 'bob' }))
    const small = await drafted(ann, 999)
    expect((await ann.post(small.path, {}, small.ifMatch)).status).to.equal(200)
    const large = await drafted(ann, 1000)
    const denied = await ann.post(large.path, {}, large.ifMatch)
    expect([denied.status, denied.body.code]).to.deep.equal([403, 'policy_denied'])
    const stale = await ann.post(large.path, {}, { 'if-match': '"x"' })
    expect(stale.status, 'the policy is checked before the version').to.equal(403)
    expect((await bob.post(large.path, {}, large.ifMatch)).body).to.include({ state: 'approved', approved_by: 'bob' })
  })

  it('keeps the reason, which the history and the audit record show', async () => {
    const ann = clientOf(service.api, await service.token({ subject: 'ann' }))
    const { path, ifMatch } = await drafted(ann, 100)
    const reason = 'Agreed by telephone on 3 May'
    const approved = await ann.post(path, { reason }, ifMatch)
    expect(approved.status, approved.text).to.equal(200)
    const { items } = (await ann.get(path.replace(':approve', '/history'))).body
    expect(items[1].data).to.include({ approved_by: 'ann', reason })
    const position = { 'if-min-position': approved.headers.get('ledger-position') ?? '', prefer: 'wait=10' }
    const records = await ann.get(`/audit-records?resource=${approved.body.id}`, position)
    expect(records.body.items[0]).to.include({ operation: 'approve_invoice', reason })
    const without = await drafted(ann, 100)
    expect((await ann.post(without.path, {}, without.ifMatch)).status).to.equal(200)
    const before = (await ann.get(without.path.replace(':approve', '/history'))).body.items[1]
    expect(before.data).not.to.have.property('reason')
    const refused = await ann.post((await drafted(ann, 100)).path, { reason: '' }, { 'if-match': '"0"' })
    expect([refused.status, refused.body.errors[0].pointer]).to.deep.equal([400, '/reason'])
  })

  it('does not apply to another tenant or currency, and a malformed rule is named', () => {
    const { needsFourEyes } = readConfig({ APPROVAL_FOUR_EYES: 'acme=USD:1000' })
    expect(needsFourEyes('acme', 'USD', 1000n)).to.equal(true)
    expect(needsFourEyes('acme', 'USD', 999n)).to.equal(false)
    expect(needsFourEyes('acme', 'EUR', 1000n)).to.equal(false)
    expect(needsFourEyes('globex', 'USD', 1000n)).to.equal(false)
    expect(() => readConfig({ APPROVAL_FOUR_EYES: 'acme=1000' })).to.throw('APPROVAL_FOUR_EYES')
  })
})

describe('approval by four eyes, with the tokens of an issuer whose clients have a subject of their own', () => {
  const SERVICE: Principal = { ...caller, subject: 'service-account-shop', client: 'shop', kind: 'workload' }
  const principals: Readonly<Record<string, Principal>> = {
    'the client': SERVICE,
    'its user': { ...SERVICE, subject: 'ann', kind: 'user' },
    'another user of it': { ...SERVICE, subject: 'bob', kind: 'user' },
    'a user of another client': { ...SERVICE, subject: 'ann', client: 'desk', kind: 'user' },
    'another client': { ...SERVICE, subject: 'service-account-desk', client: 'desk' },
  }
  let variant: Variant
  before(async () => {
    variant = await startVariant(await sharedService(), {
      authenticate: async ({ headers }) => principals[String(headers.authorization).slice('Bearer '.length)] ?? caller,
    })
  })
  after(() => variant.close())

  const as = (who: string): Client => clientOf(variant.api, who)
  const cases: readonly [creator: string, approver: string, status: number][] = [
    ['the client', 'its user', 403],
    ['its user', 'the client', 403],
    ['the client', 'a user of another client', 200],
    ['the client', 'another client', 200],
    ['its user', 'another user of it', 200],
    ['its user', 'a user of another client', 403],
  ]
  for (const [creator, approver, status] of cases)
    it(`${status === 200 ? 'permits' : 'refuses'}: ${creator} creates the invoice, ${approver} approves it`, async () => {
      const { path, ifMatch } = await drafted(as(creator), 1000, 'CHF')
      const answer = await as(approver).post(path, {}, ifMatch)
      expect(answer.status, answer.text).to.equal(status)
      if (status === 403) expect(answer.body.code).to.equal('policy_denied')
    })
})
