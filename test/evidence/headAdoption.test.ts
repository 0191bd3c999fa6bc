import { generateKeyPairSync } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { writeEvidence } from '../../scripts/ledger/evidence/write.ts'
import { progressFor } from '../../scripts/ledger/progress.ts'
import { adoptHeads, trustedBy } from '../../src/evidence/headAdoption.ts'
import { openHeadFile } from '../../src/evidence/headFile.ts'
import { type Head, type SigningKey, signHead, signingKeyOf } from '../../src/evidence/heads.ts'
import { headsAfter, storeHead, storeKey } from '../../src/evidence/headStore.ts'
import type { Database } from '../../src/ports.ts'
import { createTables } from '../../src/schema/tables.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { removeFolder } from '../support/folders.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { temporaryDirectory } from '../support/service.ts'

const newKey = (): SigningKey => signingKeyOf(generateKeyPairSync('ed25519').privateKey)

describe('the adoption of heads', () => {
  const postgres = useTestPostgres()
  const [own, foreign] = [newKey(), newKey()]
  let database: Database
  let folder: string

  const path = (): string => join(folder, 'heads.jsonl')
  const headOf = (tree_size: number, key = own, generation = 1): Head =>
    signHead(
      {
        v: 1,
        log: 'the-log',
        generation,
        tree_size,
        root: 'ab'.repeat(32),
        position: '7',
        time: '2026-01-01T00:00:00.000Z',
        previous_size: 0,
        consistency: [],
      },
      key,
    )
  const write = (...heads: readonly Head[]): Promise<void> => openHeadFile(path()).append(heads)
  const adopt = (key = own): Promise<Head | undefined> => adoptHeads(database.sql, openHeadFile(path()), key)
  const linesOfFile = async (): Promise<number> => (await readFile(path(), 'utf8')).split('\n').length - 1

  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    await createTables(database, 'evidence')
    await storeKey(database.sql, own)
    folder = await temporaryDirectory()
  })
  afterEach(() => removeFolder(folder))

  it('takes no last line of the file that the service did not sign, and names the file and the line', async () => {
    for (const forged of [headOf(9, foreign), { ...headOf(9), root: 'cd'.repeat(32) }]) {
      await write(headOf(3), forged)
      const { name, message } = await rejectionOf(adopt())
      expect(name).to.equal('UntrustedHead')
      expect(message).to.include(`Line 2 of ${path()}, the head of 9 events of generation 1`)
      expect(await headsAfter(database.sql)).to.deep.equal([])
      await rm(path())
    }
  })

  it('takes no head of Postgres whose key Postgres alone knows, and writes none of them to the file', async () => {
    await write(headOf(3))
    await storeKey(database.sql, foreign)
    await storeHead(database.sql, headOf(9, foreign))
    expect((await rejectionOf(adopt())).message).to.include('In Postgres the head of 9 events of generation 1')
    expect(await linesOfFile()).to.equal(1)
  })

  it('takes no head whose key another one has replaced in Postgres', async () => {
    const former = newKey()
    await storeKey(database.sql, former)
    await database.sql('update evidence_keys set public_key = $2 where id = $1', [former.id, foreign.publicKey])
    await storeHead(database.sql, headOf(9, { ...foreign, id: former.id }))
    expect((await rejectionOf(adopt())).name).to.equal('UntrustedHead')
  })

  it('takes heads of a former key of the service after its key was changed', async () => {
    const next = newKey()
    await storeKey(database.sql, next)
    await write(headOf(3))
    await storeHead(database.sql, headOf(3))
    await storeHead(database.sql, headOf(5))
    await storeHead(database.sql, headOf(6, next))
    expect(await adopt(next)).to.include({ tree_size: 6 })
    expect(await linesOfFile()).to.equal(3)
    await rm(path())
    expect(await adopt(next)).to.include({ tree_size: 6 })
    expect(await linesOfFile()).to.equal(3)
  })

  it('takes no head of a key that was replaced, which may have been stolen: neither from Postgres nor from the file', async () => {
    const next = newKey()
    await storeKey(database.sql, next)
    await write(headOf(3), headOf(5, next))
    await storeHead(database.sql, headOf(9))
    expect((await rejectionOf(adopt(next))).message).to.include('In Postgres the head of 9 events of generation 1')
    expect(await linesOfFile()).to.equal(2)
    const isTrusted = await trustedBy(path(), new Map([own, next].map(key => [key.id, key.publicKey])))
    expect([headOf(3), headOf(9), headOf(9, next), headOf(1, own, 2)].map(isTrusted)).to.deep.equal([
      true,
      false,
      true,
      false,
    ])
    await database.sql('delete from evidence_heads')
    await write(headOf(9))
    const { name, message } = await rejectionOf(adopt(next))
    expect(name).to.equal('ReplacedKey')
    expect(message).to.include(path()).and.include(own.id).and.include(next.id)
  })

  it('is refused to a service whose key was replaced, as to one that was restarted with its old settings', async () => {
    const next = newKey()
    await storeKey(database.sql, next)
    await write(headOf(3), headOf(5, next))
    expect((await rejectionOf(adopt())).name).to.equal('ReplacedKey')
    expect(await adopt(newKey())).to.include({ tree_size: 5 })
  })

  describe('for an export of evidence', () => {
    const exported = () => {
      const world = { now: () => 0, sleep: () => Promise.resolve() }
      const to = { headsFile: path(), folder: join(folder, 'evidence'), tenant: null }
      const startProgress = progressFor({ json: true })
      const { signal } = new AbortController()
      return writeEvidence({ store: createMemoryLog().open(), database, world, ...to, startProgress, signal })
    }

    it('ends with the newest head that the service has signed, whatever was written into Postgres', async () => {
      await write(headOf(3))
      await storeHead(database.sql, headOf(3))
      await storeHead(database.sql, { ...headOf(1), generation: 99 })
      expect((await exported()).head).to.include({ generation: 1, tree_size: 3 })
    })

    it('is refused while Postgres lacks the newest head, as after a restore', async () => {
      await write(headOf(3), headOf(5))
      await storeHead(database.sql, headOf(3))
      expect((await rejectionOf(exported())).message).to.match(/^Postgres does not have the newest head .* of 5 events/)
    })
  })
})
