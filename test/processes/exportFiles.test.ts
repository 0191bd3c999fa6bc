import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { fileSink } from '../../src/processes/exports/exportFiles.ts'
import { type Row, type Sql, Unavailable } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'

const CHUNK = new Uint8Array(256 * 1024).fill(7)
/** A whole chunk is stored when a byte follows it, since the end stores the last one. */
const MORE = new Uint8Array(1)
const STORED: Row[] = [{ seq: 0 }]
const nextLoop = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A database whose inserts are answered by the test. */
const createInserts = () => {
  const stored: Uint8Array[] = []
  const texts: string[] = []
  const waiting: PromiseWithResolvers<Row[]>[] = []
  const sql: Sql = <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> => {
    texts.push(text)
    stored.push(values[3] as Uint8Array)
    const answer = Promise.withResolvers<Row[]>()
    waiting.push(answer)
    return answer.promise as Promise<R[]>
  }
  return { sql, stored, texts, waiting }
}

/** Each insert is answered in the next turn of the event loop. */
const answering =
  ({ sql, waiting }: ReturnType<typeof createInserts>): Sql =>
  <R extends Row>(text: string, values?: readonly unknown[]): Promise<R[]> => {
    const answer = sql<R>(text, values)
    setImmediate(() => waiting.at(-1)?.resolve(STORED))
    return answer
  }

describe('the file of an export', () => {
  it('stores one chunk while the next one is written, and not two', async () => {
    const { sql, stored, waiting } = createInserts()
    const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
    await sink.write(CHUNK)
    expect(stored).to.have.length(0)
    await sink.write(MORE)
    expect(stored).to.have.length(1)
    let isSecondAccepted = false
    const second = sink.write(CHUNK).then(() => (isSecondAccepted = true))
    await nextLoop()
    expect({ stored: stored.length, isSecondAccepted }).to.deep.equal({ stored: 1, isSecondAccepted: false })
    waiting[0]?.resolve(STORED)
    await second
    expect(stored).to.have.length(2)
  })

  it('has ended when every chunk is stored', async () => {
    const { sql, stored, waiting } = createInserts()
    const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
    await sink.write(CHUNK.subarray(0, 10))
    let isEnded = false
    const ended = sink.end().then(written => {
      isEnded = true
      return written
    })
    await nextLoop()
    expect({ stored: stored.length, isEnded }).to.deep.equal({ stored: 1, isEnded: false })
    waiting[0]?.resolve(STORED)
    const sha256 = createHash('sha256').update(CHUNK.subarray(0, 10)).digest('hex')
    expect(await ended).to.deep.equal({ byte_count: 10, sha256 })
  })

  it('waits for the disk with its last chunk alone, which is stored after the others', async () => {
    for (const length of [1, CHUNK.length, CHUNK.length + 1, 2 * CHUNK.length, 2 * CHUNK.length + 1]) {
      const inserts = createInserts()
      const sink = fileSink(answering(inserts), { id: 'op_1', attempt: 1 })
      const bytes = Buffer.from(Array.from({ length }, (_, at) => at % 251))
      for (let from = 0; from < length; from += 100_000) await sink.write(bytes.subarray(from, from + 100_000))
      const { byte_count } = await sink.end()
      expect(byte_count).to.equal(length)
      expect(inserts.stored.map(({ length: stored }) => stored <= CHUNK.length)).not.to.include(false)
      expect(Buffer.concat(inserts.stored).equals(bytes)).to.equal(true)
      const areWithoutDisk = inserts.texts.map(text => text.includes('synchronous_commit'))
      expect({ length, areWithoutDisk }).to.deep.equal({
        length,
        areWithoutDisk: inserts.texts.map((_, at) => at < inserts.texts.length - 1),
      })
    }
  })

  it('without bytes has no chunk', async () => {
    const { sql, stored } = createInserts()
    const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
    await sink.write(new Uint8Array())
    expect((await sink.end()).byte_count).to.equal(0)
    expect(stored).to.deep.equal([])
  })

  it('fails with the next chunk, or at its end, when a chunk is not stored', async () => {
    const lost = new Error('lost')
    for (const next of ['write', 'end'] as const) {
      const { sql, waiting } = createInserts()
      const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
      await sink.write(CHUNK)
      await sink.write(MORE)
      waiting[0]?.reject(lost)
      await nextLoop()
      expect(await rejectionOf(next === 'write' ? sink.write(CHUNK) : sink.end())).to.equal(lost)
    }
  })

  it('has no end when the last chunk does not find all others', async () => {
    const { sql, waiting } = createInserts()
    const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
    await sink.write(CHUNK)
    await sink.write(MORE)
    waiting[0]?.resolve([])
    const ended = rejectionOf(sink.end())
    await nextLoop()
    waiting[1]?.resolve([])
    const error = await ended
    expect(error).to.be.instanceOf(Unavailable)
    expect(error).to.include({ dependency: 'database', effect: 'none' })
  })
})
