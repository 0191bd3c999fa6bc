import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { fileSink } from '../../src/commands/exportFiles.ts'
import type { Row, Sql } from '../../src/ports.ts'
import { rejectionOf } from '../support/rejection.ts'

const CHUNK = new Uint8Array(256 * 1024).fill(7)
const nextLoop = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** A database whose inserts are answered by the test. */
const createInserts = () => {
  const stored: Uint8Array[] = []
  const waiting: PromiseWithResolvers<Row[]>[] = []
  const sql: Sql = <R extends Row>(_: string, values: readonly unknown[] = []): Promise<R[]> => {
    stored.push(values[3] as Uint8Array)
    const answer = Promise.withResolvers<Row[]>()
    waiting.push(answer)
    return answer.promise as Promise<R[]>
  }
  return { sql, stored, waiting }
}

describe('the file of an export', () => {
  it('stores one chunk while the next one is written, and not two', async () => {
    const { sql, stored, waiting } = createInserts()
    const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
    await sink.write(CHUNK)
    expect(stored).to.have.length(1)
    let isSecondAccepted = false
    const second = sink.write(CHUNK).then(() => (isSecondAccepted = true))
    await nextLoop()
    expect({ stored: stored.length, isSecondAccepted }).to.deep.equal({ stored: 1, isSecondAccepted: false })
    waiting[0]?.resolve([])
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
    waiting[0]?.resolve([])
    const sha256 = createHash('sha256').update(CHUNK.subarray(0, 10)).digest('hex')
    expect(await ended).to.deep.equal({ byte_count: 10, sha256 })
  })

  it('fails with the next chunk, or at its end, when a chunk is not stored', async () => {
    const lost = new Error('lost')
    for (const next of ['write', 'end'] as const) {
      const { sql, waiting } = createInserts()
      const sink = fileSink(sql, { id: 'op_1', attempt: 1 })
      await sink.write(CHUNK)
      waiting[0]?.reject(lost)
      await nextLoop()
      expect(await rejectionOf(next === 'write' ? sink.write(CHUNK) : sink.end())).to.equal(lost)
    }
  })
})
