import { expect } from 'chai'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { ledger, tidyUp } from './fixtures.ts'

const TENANT = 'operators-of-subscriptions'
const OF_TENANT = ['--tenant', TENANT] as const

describe('npm run ledger -- subscriptions', () => {
  after(tidyUp)

  const subscriptions = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await ledger(['subscriptions', ...args, ...OF_TENANT, '--json'])
    expect(code, stderr).to.equal(0)
    return JSON.parse(stdout)
  }
  const created = () => subscriptions('create', '--types', 'invoice.paid, order.created', '--start', 'beginning')

  it('creates, shows, pauses, resumes, replays and deletes a subscription', async () => {
    const { id, topic, types } = await created()
    expect([topic, types]).to.deep.equal([`ledger.subscription.${id}`, ['order.created', 'invoice.paid']])
    expect((await subscriptions('pause', id)).state).to.equal('paused')
    expect((await subscriptions('show', id)).state).to.equal('paused')
    expect((await subscriptions('resume', id)).state).to.equal('active')
    expect((await subscriptions('replay', id, '--from', '0')).id).to.match(/^op_/)
    expect(await subscriptions('delete', id)).to.deep.equal({ id, state: 'deleted' })
    const service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant: TENANT }))
    expect((await client.get(`/subscriptions/${id}`)).status).to.equal(404)
  })

  it('creates and replays once when a command is repeated with its idempotency key', async () => {
    const once = ['--idempotency-key', 'a-command-of-today'] as const
    const create = () => subscriptions('create', '--types', 'invoice.paid', ...once)
    const { id } = await create()
    expect((await create()).id).to.equal(id)
    const replay = () => subscriptions('replay', id, '--from', 'beginning', ...once)
    expect(await replay()).to.deep.equal(await replay())
  })

  it('lists them in columns', async () => {
    const { id } = await created()
    await eventually(async () => {
      const { stdout } = await ledger(['subscriptions', 'list', ...OF_TENANT])
      return new RegExp(`^${id} +active +\\S+ +0 +order.created invoice.paid$`, 'm').test(stdout)
    })
  })

  for (const [name, args, complaint] of [
    [
      'a start without a zone',
      ['create', '--types', 'invoice.paid', '--start', '2026-01-31T12:00:00'],
      'with its zone',
    ],
    ['an invalid start', ['create', '--types', 'invoice.paid', '--start', 'soon'], '"soon" is not a place in the log'],
    ['an unknown type', ['create', '--types', 'invoice.lost'], '/types/0'],
    ['a malformed id', ['show', 'sub_1'], 'resource_not_found'],
  ] as const)
    it(`reports ${name}`, async () => {
      const { code, stderr } = await ledger(['subscriptions', ...args, ...OF_TENANT])
      expect(code).to.equal(2)
      expect(stderr).to.include(complaint)
    })
})
