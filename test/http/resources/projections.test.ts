import { expect } from 'chai'
import { READ_MODEL_NAMES } from '../../../projections/index.ts'
import { type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { run } from '../../scripts/cli.ts'
import { TENANT as OPERATORS } from '../../support/serviceVariants.ts'

/** A rebuild waits for a poll, and reads the log of all tests of the process. */
const REBUILT_MAX_MS = 240_000

describe('the read models over HTTP', () => {
  let service: TestService
  let operator: Client

  before(async () => {
    service = await sharedService()
    operator = clientOf(service.api, await service.token({ tenant: OPERATORS, subject: 'olga' }))
  })

  const rebuildOf = async (name: string) => {
    const { items } = (await operator.get('/projections')).body
    return items.find((item: { name: string }) => item.name === name).rebuild
  }
  const ended = (name: string, id: string) =>
    eventually(async () => {
      const rebuild = await rebuildOf(name)
      return rebuild.id === id && !['pending', 'running'].includes(rebuild.state) && rebuild
    }, REBUILT_MAX_MS)

  it('are listed with their positions and their lag', async () => {
    // A read model has no position until the projector of a new service has begun.
    const items = await eventually(async () => {
      const { status, body } = await operator.get('/projections')
      expect(status).to.equal(200)
      return body.items.every(({ position }: { position: string | null }) => position !== null) && body.items
    })
    expect(items.map(({ name }: { name: string }) => name)).to.deep.equal(READ_MODEL_NAMES)
    for (const { position, lag } of items) {
      expect(position).to.match(/^-?\d+$/)
      expect(lag.events).to.be.within(0, 1_000)
    }
  })

  it('are verified and rebuilt, with an audit record of the operator', async () => {
    const verification = await operator.post('/projections/invoices:verify', {})
    expect([verification.status, verification.body.requested_by]).to.deep.equal([202, 'olga'])
    const verified = await ended('invoices', verification.body.id)
    expect([verified.state, verified.difference, verified.parity.tables.length]).to.deep.equal(['succeeded', null, 1])
    const { status, body } = await operator.post('/projections/invoices:rebuild', {})
    expect(status).to.equal(202)
    const rebuilt = await ended('invoices', body.id)
    expect([rebuilt.state, rebuilt.progress.unit]).to.deep.equal(['succeeded', 'events'])
    const isRecorded = async () => {
      const { items } = (await operator.get('/audit-records?operation=rebuild_projection&subject=olga')).body
      return items.length > 0 && items[0]
    }
    expect(await eventually(isRecorded)).to.include({ decision: 'granted', resource: 'invoices' })
  })

  it('are refused to a caller of another tenant with the same scope, which is recorded', async () => {
    const caller = clientOf(service.api, await service.token({ tenant: 'acme', subject: 'mallory' }))
    for (const { status, body } of [
      await caller.get('/projections'),
      await caller.post('/projections/payments:rebuild', {}),
      await caller.post('/projections/payments:rollback', {}),
      await caller.post('/projections/payments:verify', {}),
      await caller.post('/projections/payments:cancel', {}),
    ])
      expect([status, body.code]).to.deep.equal([403, 'policy_denied'])
    const isRecorded = async () => {
      const { items } = (await caller.get('/audit-records?operation=rebuild_projection&subject=mallory')).body
      return items.length > 0 && items[0]
    }
    expect(await eventually(isRecorded)).to.include({ decision: 'denied', code: 'policy_denied' })
  })

  it('have audit records of the installation, for operators with a scope of their own', async () => {
    const { dataDir } = service
    const ended = await run('ledger.ts', ['projections', 'verify', 'orders', '--no-wait'], { LEDGER_DATA_DIR: dataDir })
    expect(ended.code, ended.stderr).to.equal(0)
    const path = '/installation/audit-records?operation=verify_projection'
    const match = async () => {
      const { status, body } = await operator.get(path)
      expect(status).to.equal(200)
      return body.items.find(({ tenant_id }: { tenant_id: string }) => tenant_id === 'ledger')
    }
    expect(await eventually(match)).to.include({ resource: 'orders', authority: 'operator' })
    const clientWith = async (who: object): Promise<Client> => clientOf(service.api, await service.token(who))
    const unscoped = await clientWith({ tenant: OPERATORS, scopes: ['audit:read'] })
    expect((await unscoped.get(path)).body.code).to.equal('insufficient_scope')
    expect((await (await clientWith({ tenant: 'acme' })).get(path)).body.code).to.equal('policy_denied')
    // The refusal of the caller without the scope is one of these records too.
    const decisions = async (): Promise<ReadonlySet<string>> => {
      const { items } = (await operator.get('/audit-records?operation=list_installation_audit_records')).body
      return new Set(items.map(({ decision }: { decision: string }) => decision))
    }
    await eventually(async () => (await decisions()).isSupersetOf(new Set(['granted', 'denied'])))
  })

  it('need a reason to accept differences, and a name that there is', async () => {
    const { status, body } = await operator.post('/projections/payments:rebuild', { accept_differences: true })
    expect([status, body.errors[0].pointer]).to.deep.equal([400, '/reason'])
    expect((await operator.post('/projections/nothing:rebuild', {})).status).to.equal(404)
  })
})
