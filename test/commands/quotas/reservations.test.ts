import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { reserve } from '../../../src/commands/quotas/reservations.ts'
import type { Database } from '../../../src/ports.ts'
import { clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'

const TENANT = 'running-exports'

describe('running exports', () => {
  const MAX = { caller: 2, tenant: 1_000, bytes: 1e12 }
  const at = '2020-01-01T00:00:00.000Z'
  const ownerOf = (subject: string, tenant = TENANT): string => JSON.stringify([tenant, subject, subject])
  /** Resolves to the limit that is reached; undefined when the place is taken. */
  const take = (subject: string, id: string, { tenant = TENANT, max = {} }: { tenant?: string; max?: object } = {}) =>
    reserve(database, { kind: 'exports', tenant, owner: ownerOf(subject, tenant), id, at, max: { ...MAX, ...max } })
  const idOf = (index: number): string => `op_${String(index).padStart(26, '0')}`
  let database: Database

  before(async () => {
    database = openDatabase({ connectionString: (await sharedService()).addresses.postgres })
  })
  after(() => database.close())

  it('are limited to two for each caller, also for concurrent requests', async () => {
    const requested = Array.from({ length: 20 }, (_, index) => take('one', idOf(index)))
    const answers = await Promise.all(requested)
    expect(answers.filter(answer => answer === undefined)).to.have.length(2)
    expect(new Set(answers)).to.deep.equal(new Set([undefined, 'caller']))
    expect(await take('another', idOf(30))).to.equal(undefined)
  })

  it('count once, also when a request is repeated', async () => {
    for (const id of [idOf(40), idOf(40), idOf(41), idOf(41)]) expect(await take('same', id)).to.equal(undefined)
    expect(await take('same', idOf(42))).to.equal('caller')
  })

  it('release their slot when they end, or when they were never accepted', async () => {
    const client = clientOf((await sharedService()).api, await (await sharedService()).token({ tenant: TENANT }))
    const { body } = await client.post('/exports', { resource: 'orders', format: 'csv' })
    await eventually(async () => (await client.get(`/operations/${body.id}`)).body.state === 'succeeded')
    const rows = `insert into reservations (kind, tenant_id, id, owner, taken_at) values
      ('exports', $1, $2, $3, now()), ('exports', $1, 'op_never', $3, now() - interval '61 seconds')
      on conflict (kind, tenant_id, id) do update set owner = excluded.owner`
    await database.sql(rows, [TENANT, body.id, ownerOf('ended')])
    await eventually(async () => (await take('ended', idOf(50), { max: { caller: 1 } })) === undefined)
  })

  it('are limited for the tenant too, also for concurrent requests of many callers', async () => {
    const tenant = 'many-exporters'
    const requested = Array.from({ length: 20 }, (_, index) =>
      take(`caller-${index}`, idOf(100 + index), { tenant, max: { tenant: 8 } }),
    )
    const answers = await Promise.all(requested)
    expect(answers.filter(answer => answer === undefined)).to.have.length(8)
    expect(answers.filter(answer => answer === 'tenant')).to.have.length(12)
  })

  it('are refused when the files of the tenant have as many bytes as it may store', async () => {
    const tenant = `full-${newKey()}`
    const service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant }))
    const { body } = await client.post('/exports', { resource: 'orders', format: 'csv' })
    await eventually(async () => (await client.get(`/operations/${body.id}`)).body.state === 'succeeded')
    const takeOne = () => take('full', idOf(60), { tenant, max: { bytes: 1 } })
    await eventually(async () => (await takeOne()) === 'bytes')
    expect((await client.request('DELETE', `/exports/${body.id}`)).status).to.equal(204)
    await eventually(async () => (await takeOne()) === undefined)
  })
})
