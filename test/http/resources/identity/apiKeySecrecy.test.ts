import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../../../src/adapters/postgres/database.ts'
import { loadApiKeyPepper } from '../../../../src/embedded/apiKeyPepper.ts'
import { createApiKeySecrets } from '../../../../src/identity/apiKeySecrets.ts'
import { READ_SCOPES } from '../../../../src/identity/principal.ts'
import type { EventStore, JsonObject } from '../../../../src/ports.ts'
import { everyRow } from '../../../support/databaseDump.ts'
import { type Answer, type Client, clientOf } from '../../../support/client.ts'
import { sharedService, type TestService } from '../../../support/service.ts'

const TENANT = 'api-key-secrecy'
const KEY = /^lk_dev_[0-9A-HJKMNP-TV-Z]{26}_([0-9A-Za-z]{43})_[0-9A-Za-z]{6}$/

describe('the secrets of API keys', () => {
  let service: TestService
  let client: Client
  let store: EventStore

  const secretIn = (key: string): string => KEY.exec(key)?.[1] ?? expect.fail(`No key: ${key}`)
  const use = (key: string): Promise<Answer> => clientOf(service.api).get('/orders', { 'x-api-key': key })
  const issue = async () => (await client.post('/api-keys', { name: 'nightly', scopes: READ_SCOPES })).body

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store })
  })
  after(() => store.close())

  const dump = async (): Promise<string> => {
    const database = openDatabase({ connectionString: service.addresses.postgres })
    try {
      return await everyRow(database)
    } finally {
      await database.close()
    }
  }
  const filesUnder = async (folder: string): Promise<string[]> =>
    (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))

  it('are not in events, tables, logs or any file of the service', async () => {
    const first = await issue()
    const second = (await client.post(`/api-keys/${first.id}:rotate`)).body
    for (const { secret } of [first, second]) {
      await use(secret)
      await use(`${secret}0`)
    }
    await client.get('/api-keys', { 'if-min-position': String(await store.head()), prefer: 'wait=10' })
    const pepper = await loadApiKeyPepper(service.dataDir)
    const texts = [first, second].flatMap(({ secret }) => [secretIn(secret), secret.slice(-50)])
    const tables = await dump()
    expect(tables).to.contain(first.id)
    for (const text of [...texts, pepper]) expect(tables).to.not.contain(text)
    const events = []
    for await (const event of store.readStream(`apiKey-${first.id}`)) events.push(JSON.stringify(event.data))
    expect(events).to.have.length(2)
    for (const text of [...texts, pepper]) expect(events.join()).to.not.contain(text)
    let filesWithId = 0
    for (const path of await filesUnder(service.dataDir)) {
      // Files come and go while the service runs.
      const bytes = await readFile(path).catch(() => Buffer.alloc(0))
      filesWithId += bytes.includes(first.id) ? 1 : 0
      for (const text of texts) expect(bytes.includes(text), path).to.equal(false)
    }
    expect(filesWithId).to.be.above(0)
  })

  it('cannot be derived from a dump: its hashes and nonces authenticate nothing', async () => {
    const { id, secret } = await issue()
    const kept: JsonObject[] = []
    for await (const { data } of store.readStream(`apiKey-${id}`)) kept.push(data)
    const { nonce, hash } = kept[0] as { nonce: string; hash: string }
    const foreign = createApiKeySecrets('dev', hash)
    for (const key of [foreign.keyOf(id, nonce), foreign.keyOf(id, hash), hash, nonce])
      expect((await use(key)).body.code).to.equal('api_key_invalid')
    expect((await use(secret)).status).to.equal(200)
  })
})
