import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { TOMBSTONE_REVISION, type StoredRecord } from '../../src/embedded/eventstore/record.ts'
import { type WriterSession, openReader, openWriterSession } from '../../src/embedded/eventstore/storage.ts'
import { newDatabase } from '../support/postgres.ts'

const LARGE_BYTES = 300_000

describe('embedded event store: the insert of a batch', () => {
  let session: WriterSession
  let databaseUrl: string
  let position = 0n

  before(async () => {
    databaseUrl = await newDatabase()
    session = await openWriterSession(databaseUrl)
  })
  after(() => session.end())

  const recordWith = (values: Partial<StoredRecord>): StoredRecord => ({
    position: (position += 100n),
    stream: `made-${randomUUID()}`,
    revision: 0n,
    id: randomUUID(),
    type: 'Made',
    isJson: true,
    data: Buffer.from('{}'),
    metadata: Buffer.alloc(0),
    createdTicks: 17_000_000_000_000_000n,
    ...values,
  })

  const stored = async (after: bigint): Promise<StoredRecord[]> => {
    const reader = openReader(databaseUrl)
    return reader.allPage('forwards', after, 100).finally(() => reader.end())
  }

  it('stores every value as it is', async () => {
    const before = position
    const records = [
      recordWith({ stream: 'with "quotes", {braces}, back\\slash, NULL and é€😀', type: '€'.repeat(600) }),
      recordWith({ revision: TOMBSTONE_REVISION, isJson: false, data: Buffer.from([0, 255, 92, 120]) }),
      recordWith({ data: Buffer.alloc(0), metadata: Buffer.from('{"é":"\\u0000"}') }),
      recordWith({ data: Buffer.alloc(LARGE_BYTES, 'x'), id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' }),
    ]
    await session.insert(records)
    expect(await stored(before)).to.deep.equal(records)
  })

  it('goes on after an insert that Postgres refuses', async () => {
    const [first, next] = [recordWith({}), recordWith({})]
    await session.insert([first])
    const refused = await session.insert([recordWith({ position: first.position })]).catch(error => error)
    expect(refused).to.include({ code: '23505', severity: 'ERROR' })
    await session.insert([next])
    expect((await stored(first.position)).map(({ id }) => id)).to.deep.equal([next.id])
  })

  it('rejects after the end of the connection', async () => {
    const ended = await openWriterSession(await newDatabase())
    await ended.end()
    const error = await ended.insert([recordWith({})]).catch(reason => reason)
    expect(error).to.be.instanceOf(Error)
    expect(error).not.to.have.property('severity')
  })
})
