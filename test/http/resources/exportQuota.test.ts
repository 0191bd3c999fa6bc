import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { readConfig } from '../../../src/settings/config.ts'
import type { Database } from '../../../src/ports.ts'
import { type Answer, anOrder, type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { removeFolder } from '../../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../../support/service.ts'

const TENANT = 'exporters'
const BYTES_MAX = 1024
const TARGET = { resource: 'orders', format: 'csv' }

describe('the quota of exports', () => {
  let dataDir: string
  let service: ServiceProcess
  let database: Database

  before(async () => {
    dataDir = await temporaryDirectory()
    // Without a worker, exports stay unfinished until they are cancelled.
    service = await startProcess(dataDir, {
      LEDGER_ROLES: 'api,projector',
      CONCURRENCY_LIMITS: 'exports=2,tenant_exports=3',
      EXPORT_BYTES_PER_TENANT: '1KiB',
    })
    database = openDatabase({ connectionString: service.addresses.postgres })
  })
  after(async () => {
    await database?.close()
    await service?.end('SIGTERM')
    await removeFolder(dataDir)
  })

  const as = async (subject: string, tenant = TENANT): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant, subject }))
  const remove = (client: Client, id: string): Promise<Answer> => client.request('DELETE', `/exports/${id}`)
  const expectRefused = ({ body, text }: Answer, detail: string): void => {
    expect(body, text).to.include({ status: 429, code: 'quota_exceeded' })
    expect(body.detail).to.include(detail)
  }

  it('names the limit of the caller or of its tenant, and a deleted export makes room at once', async () => {
    const [one, two, three] = [await as('one'), await as('two'), await as('three')]
    const accepted = [await one.post('/exports', TARGET), await one.post('/exports', TARGET)]
    expectRefused(await one.post('/exports', TARGET), 'You have 2 unfinished exports, the maximum.')
    accepted.push(await two.post('/exports', TARGET))
    expect(accepted.map(({ status }) => status)).to.deep.equal([202, 202, 202])
    expectRefused(await three.post('/exports', TARGET), 'Your tenant has 3 unfinished exports, the maximum.')
    expect((await (await as('one', 'another')).post('/exports', TARGET)).status).to.equal(202)
    expect((await remove(three, accepted[0]?.body.id)).status).to.equal(204)
    const next = await eventually(async () => {
      const answer = await three.post('/exports', TARGET)
      return answer.status === 202 && answer
    })
    for (const { body } of [...accepted, next]) await remove(one, body.id)
  })

  it('ends an unfinished export at DELETE: it is cancelled, has no file, and can be deleted again', async () => {
    const client = await as('deleting', 'deleting')
    const { body } = await client.post('/exports', TARGET)
    const deleted = [await remove(client, body.id), await remove(client, body.id)]
    expect(deleted.map(({ status }) => status)).to.deep.equal([204, 204])
    const operation = await client.get(`/operations/${body.id}`)
    expect(operation.body).to.include({ state: 'cancelled', result: null, error: null })
    const content = await client.get(`/exports/${body.id}/content`)
    expect(content.body).to.include({ status: 404, detail: 'The export has no file: it is cancelled.' })
    const [first, second] = deleted.map(({ headers }) => headers.get('ledger-position'))
    expect(first).to.match(/^\d+$/)
    expect(second).to.equal(first)
  })

  it('refuses exports when the files of the tenant have EXPORT_BYTES_PER_TENANT, until some are deleted', async () => {
    const client = await as('full', 'full')
    await client.post('/orders', anOrder())
    const { body } = await client.post('/exports', TARGET)
    await eventually(async () => (await client.get('/operations')).body.items.length === 1)
    const fill = (state: string, bytes: number) =>
      database.sql('update operations_v1 set state = $2, byte_count = $3 where id = $1', [body.id, state, bytes])
    await fill('succeeded', BYTES_MAX - 1)
    const accepted = await client.post('/exports', TARGET)
    expect(accepted.status, accepted.text).to.equal(202)
    await remove(client, accepted.body.id)
    await fill('succeeded', BYTES_MAX)
    expectRefused(await client.post('/exports', TARGET), `limit of ${BYTES_MAX} bytes`)
    expect((await client.post('/exports', TARGET)).body.detail).to.include('DELETE /exports/{id}')
    await fill('expired', BYTES_MAX)
    expect((await client.post('/exports', TARGET)).status).to.equal(202)
  })

  it('has a limit of bytes with a unit, 10 GiB by default', () => {
    const bytesOf = (value?: string) => readConfig(value ? { EXPORT_BYTES_PER_TENANT: value } : {}).exportBytesPerTenant
    expect([bytesOf(), bytesOf('512MiB')]).to.deep.equal([10 * 2 ** 30, 512 * 2 ** 20])
    expect(() => bytesOf('10GB')).to.throw(/EXPORT_BYTES_PER_TENANT=10GB .* 5GiB/)
  })
})
