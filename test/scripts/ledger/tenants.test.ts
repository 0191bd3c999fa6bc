import { expect } from 'chai'
import { anOrder, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { closedPort, folderWith, ledger, tidyUp } from './fixtures.ts'

type Listed = { readonly tenant: string; readonly suspended: boolean; readonly stream: string; readonly last: object }

describe('npm run ledger -- tenants', () => {
  const tenant = `tenants-${newKey().slice(0, 8)}`
  const REASON = 'invoice 4711 is overdue'

  const listed = async (name: string): Promise<Listed | undefined> => {
    const { items } = JSON.parse((await ledger(['tenants', 'list', '--json'])).stdout)
    return items.find((item: Listed) => item.tenant === name)
  }
  const clientFor = async () => {
    const service = await sharedService()
    return clientOf(service.api, await service.token({ tenant }))
  }

  before(async () => {
    expect((await (await clientFor()).post('/orders', anOrder())).status).to.equal(201)
    await eventually(() => listed(tenant))
  })
  after(tidyUp)

  it('suspend no tenant that is unknown, unless by force', async () => {
    const unknown = `${tenant}-misspelt`
    const { code, stdout, stderr } = await ledger(['tenants', 'suspend', unknown, '--reason', REASON])
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr).to.match(new RegExp(`^There is no tenant named ${unknown}\\. .*tenants list.*--force\\.\\n$`))
    expect(await listed(unknown)).to.equal(undefined)
    const forced = await ledger(['tenants', 'suspend', unknown, '--reason', REASON, '--force'])
    expect([forced.code, forced.stdout]).to.deep.equal([0, `${unknown} is suspended\n`])
    expect(await listed(unknown)).to.include({ suspended: true })
  })

  it('say that a tenant cannot be looked up, and suspend it by force', async () => {
    const postgres = `postgres://ledger:secret@127.0.0.1:${await closedPort()}/ledger`
    const { code, stderr } = await ledger(
      ['tenants', 'suspend', tenant, '--reason', REASON],
      await folderWith({ postgres }),
    )
    expect(code).to.equal(2)
    expect(stderr).to.match(/cannot be checked now: use --force/)
  })

  it('list who is suspended, since when, by whom and why, and doctor shows it', async () => {
    expect(await listed(tenant)).to.include({ suspended: false, last: null })
    expect((await ledger(['tenants', 'suspend', tenant, '--reason', REASON])).code).to.equal(0)
    const status = await listed(tenant)
    expect(status).to.include({ suspended: true })
    expect(status?.last).to.include({ reason: REASON })
    const { stdout } = await ledger(['tenants', 'list'])
    expect(stdout).to.match(new RegExp(`^${tenant} +suspended +ten_\\w+ +since .*: ${REASON}$`, 'm'))
    const shown = await ledger(['streams', 'show', status?.stream ?? '', '--json'])
    expect(JSON.parse(shown.stdout).events[0]).to.deep.include({ type: 'TenantSuspended', data: { reason: REASON } })
    expect((await ledger(['doctor'])).stdout).to.match(
      new RegExp(`^ok +tenants +suspended: .*${tenant} since .*${REASON}`, 'm'),
    )
  })

  it('have audit records of the tenant with the reason', async () => {
    expect((await ledger(['tenants', 'reinstate', tenant, '--reason', 'paid'])).code).to.equal(0)
    const client = await clientFor()
    const answer = async () => {
      const { status, body } = await client.get('/audit-records')
      const items = status === 200 ? (body.items as Readonly<Record<string, unknown>>[]) : []
      return items.some(({ operation }) => operation === 'reinstate_tenant') && items
    }
    const reasons = (await eventually(answer)).map(({ operation, reason }) => [operation, reason])
    expect(reasons).to.deep.include(['suspend_tenant', REASON])
    expect(reasons).to.deep.include(['reinstate_tenant', 'paid'])
  })
})
