import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { createAdapters, grantName } from '../../src/embedded/issuer/oidcAdapters.ts'
import { openDatabaseRecords } from '../../src/embedded/issuer/databaseRecords.ts'
import { createMemoryRecords } from '../../src/embedded/issuer/memoryRecords.ts'
import { fingerprintOf, type Records } from '../../src/embedded/issuer/records.ts'
import { encrypt, decrypt } from '../../src/embedded/issuer/encryption.ts'
import type { Database } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'
import { sharedService } from '../support/service.ts'

/** The contract of the issuer's records, for each of their stores. */
const recordsContract = (name: string, open: () => Promise<Records>): void => {
  describe(`identity: records ${name}`, () => {
    let records: Records
    before(async () => {
      records = await open()
    })
    const nameOf = (kind = 'RefreshToken') => ({ kind, id: randomUUID() })
    const record = (grantId = randomUUID()) => ({ ...nameOf(), payload: { grantId, scope: 'a' }, lifetimeSeconds: 60 })

    it('return the stored value until it is removed or replaced', async () => {
      const one = record()
      expect(await records.get(one)).to.equal(undefined)
      await records.put(one)
      expect(await records.get(one)).to.deep.equal(one.payload)
      expect(await records.get({ ...one, kind: 'AuthorizationCode' })).to.equal(undefined)
      await records.put({ ...one, payload: { scope: 'b' } })
      expect(await records.get(one)).to.deep.equal({ scope: 'b' })
      await records.remove(one)
      expect(await records.get(one)).to.equal(undefined)
    })

    it('are consumed by one of twenty concurrent attempts, and stay consumed', async () => {
      const one = record()
      await records.put(one)
      const won = await Promise.all(Array.from({ length: 20 }, () => records.consume(one)))
      expect(won.filter(Boolean)).to.have.length(1)
      const match = await records.get(one)
      expect(match?.consumed).to.be.closeTo(Date.now() / 1000, 60)
      expect(await records.consume(nameOf())).to.equal(false)
    })

    it('of the same new id are accepted from one of twenty concurrent attempts', async () => {
      const one = record()
      const taken = await Promise.all(Array.from({ length: 20 }, () => records.putIfNew(one)))
      expect(taken.filter(Boolean)).to.have.length(1)
    })

    it('do not exist after their expiry', async () => {
      const one = { ...record(), lifetimeSeconds: 0 }
      await records.put(one)
      expect(await records.get(one)).to.equal(undefined)
      expect(await records.consume(one)).to.equal(false)
      expect(await records.putIfNew(one)).to.equal(true)
    })

    it('of one kind and grant are removed together', async () => {
      const grantId = randomUUID()
      const [one, two, other] = [record(grantId), record(grantId), record()]
      for (const each of [one, two, other]) await records.put(each)
      await records.removeOfGrant('AuthorizationCode', grantId)
      expect(await records.get(one)).to.deep.equal(one.payload)
      await records.removeOfGrant('RefreshToken', grantId)
      expect([await records.get(one), await records.get(two)]).to.deep.equal([undefined, undefined])
      expect(await records.get(other)).to.deep.equal(other.payload)
    })

    it('serve oidc-provider: codes are used once, sessions have two names, an assertion is accepted once', async () => {
      const revoked: string[] = []
      const adapters = createAdapters({
        records,
        clients: async () => [],
        revoke: async name => void revoked.push(name),
      })
      const [codes, sessions, replays] = ['AuthorizationCode', 'Session', 'ReplayDetection'].map(adapters)
      const [code, session, uid, grantId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
      await codes?.upsert(code, { grantId }, 60)
      await codes?.consume(code)
      const message = await Promise.resolve(codes?.consume(code)).catch((error: Error) => error.message)
      expect(message).to.equal('invalid_grant')
      expect(revoked).to.deep.equal([grantName(grantId)])
      await sessions?.upsert(session, { uid, accountId: 'ann' }, 60)
      expect(await sessions?.findByUid(uid)).to.include({ accountId: 'ann' })
      expect(await sessions?.findByUid(session)).to.equal(undefined)
      await replays?.upsert(uid, {}, 60)
      const again = await Promise.resolve(replays?.upsert(uid, {}, 60)).catch((error: Error) => error.message)
      expect(again).to.equal('invalid_client')
    })
  })
}

let database: Database | undefined
const connect = async (): Promise<Database> =>
  (database ??= openDatabase({ connectionString: (await sharedService()).addresses.postgres }))

recordsContract('in memory', async () => createMemoryRecords())
recordsContract('in Postgres', async () => openDatabaseRecords(await connect()))

describe('identity: a record in the database', () => {
  after(() => database?.close())

  it('is deleted after its expiry', async () => {
    const connected = await connect()
    const expired = { kind: 'Interaction', id: randomUUID(), payload: {}, lifetimeSeconds: 0 }
    await (await openDatabaseRecords(connected)).put(expired)
    const fresh = await openDatabaseRecords(connected)
    await fresh.put({ ...expired, id: randomUUID(), lifetimeSeconds: 60 })
    const rowsOf = (id: string) =>
      connected.sql('select 1 from issuer_records_v1 where fingerprint = $1', [fingerprintOf(id)])
    await eventually(async () => (await rowsOf(expired.id)).length === 0)
  })

  it('is decrypted with its own secret only, and not when it was changed', () => {
    const sealed = encrypt('one', { scope: 'orders:read' })
    expect(decrypt('one', sealed)).to.deep.equal({ scope: 'orders:read' })
    expect(sealed.equals(encrypt('one', { scope: 'orders:read' }))).to.equal(false)
    expect(() => decrypt('two', sealed)).to.throw()
    for (const at of [0, 12, sealed.length - 1]) {
      const changed = Buffer.from(sealed)
      changed.writeUInt8((changed[at] ?? 0) ^ 1, at)
      expect(() => decrypt('one', changed), `byte ${at}`).to.throw()
    }
  })
})
