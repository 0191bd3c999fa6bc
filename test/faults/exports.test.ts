import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { anOrder, clientOf, newKey } from '../support/client.ts'
import { fetched, foldedUpTo } from '../support/exportSteps.ts'
import { openExportWorker, type ExportWorker } from '../support/exportWorker.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

const TENANT = 'exports'

describe('an export that was accepted', () => {
  let dataDir: string
  let running: ServiceProcess | undefined
  before(async () => {
    dataDir = await temporaryDirectory()
  })
  after(async () => {
    await running?.end('SIGTERM')
    await removeFolder(dataDir)
  })

  it('is written by the next process after kill -9 right after the 202; once, even if it is requested again', async () => {
    running = await startProcess(dataDir)
    const before = clientOf(running.api, await running.token({ tenant: TENANT }))
    for (let n = 0; n < 3; n++) await before.post('/orders', anOrder(100 + n))
    const key = { 'idempotency-key': newKey() }
    const body = { resource: 'orders', format: 'jsonl' }
    const reply = await before.post('/exports', body, key)
    await running.end('SIGKILL')
    expect(reply.status).to.equal(202)
    const after = await startProcess(dataDir)
    running = after
    const client = clientOf(after.api, await after.token({ tenant: TENANT }))
    const again = await client.post('/exports', body, key)
    expect([again.status, again.text]).to.deep.equal([202, reply.text])
    const { manifest, rows } = await fetched(after, client, { id: reply.body.id, tenant: TENANT })
    const store = openEventStore({ connectionString: after.addresses.event_store })
    const position = BigInt(manifest.to_position)
    expect(rows).to.deep.equal(await foldedUpTo(store, 'orders', { tenant: TENANT, position }))
    expect(rows).to.have.length(3)
    await store.close()
    expect((await client.get('/operations')).body.items).to.have.length(1)
  })
})

/** More rows than one batch of the query (500), in seven chunks. */
const PAYMENTS = 1_500

describe(`an export of ${PAYMENTS} payments`, () => {
  let worker: ExportWorker
  before(async () => {
    worker = await openExportWorker(PAYMENTS)
  })
  after(() => worker?.close())

  it('is one correct file after its worker was killed twice', () => worker.killedInTheMiddle('jsonl', 2))
})
