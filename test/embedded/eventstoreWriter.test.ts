import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import pg from 'pg'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'
import { type Writer, openWriter } from '../../src/embedded/eventstore/writer.ts'
import { newDatabase } from '../support/postgres.ts'

const REQUESTS = 16

const creationOf = (stream: string): WriteRequest => ({
  kind: 'append',
  stream,
  expected: 'no_stream',
  events: [{ id: randomUUID(), type: 'Made', isJson: true, data: Buffer.from('{}'), metadata: Buffer.alloc(0) }],
  bytes: 2,
  deadlineMs: Number.POSITIVE_INFINITY,
})

describe('embedded event store: the write queue', () => {
  let writer: Writer
  let client: pg.Client

  before(async () => {
    const connectionString = await newDatabase()
    client = new pg.Client({ connectionString })
    await client.connect()
    writer = await openWriter({ connectionString, onReplaced: () => undefined })
  })
  after(async () => {
    await writer.close()
    await client.end()
  })

  /** The number of transactions that have stored the first events of these streams. */
  const transactionsOf = async (streams: readonly string[]): Promise<number> => {
    const text =
      'select count(distinct xmin::text)::int as n, count(*)::int as stored from events where stream = any($1)'
    const { rows } = await client.query<{ n: number; stored: number }>(text, [streams])
    expect(rows[0]?.stored).to.equal(streams.length)
    return rows[0]?.n ?? 0
  }

  const newStreams = (): string[] => Array.from({ length: REQUESTS }, () => `made-${randomUUID()}`)

  it('commits the requests that arrive in one turn of the event loop together, also when it was idle', async () => {
    const streams = newStreams()
    const written = await Promise.all(streams.map(stream => writer.write(creationOf(stream))))
    expect(new Set(written.map(({ kind }) => kind))).to.deep.equal(new Set(['written']))
    expect(await transactionsOf(streams)).to.equal(1)
  })

  it('commits the requests that arrive during a commit, and those that its answers bring, together', async () => {
    const [first, during, after] = newStreams()
    const answers: Promise<Written>[] = []
    const begun = writer.write(creationOf(first ?? ''))
    await new Promise(resolve => setImmediate(resolve))
    answers.push(writer.write(creationOf(during ?? '')))
    await begun
    answers.push(writer.write(creationOf(after ?? '')))
    await Promise.all(answers)
    expect(await transactionsOf([during ?? '', after ?? ''])).to.equal(1)
    expect(await transactionsOf([first ?? '', during ?? ''])).to.equal(2)
  })

  it('completes the requests that were accepted before it is closed', async () => {
    const connectionString = await newDatabase()
    const other = await openWriter({ connectionString, onReplaced: () => undefined })
    const accepted = other.write(creationOf('made-last'))
    await other.close()
    expect((await accepted).kind).to.equal('written')
    const refused = await other.write(creationOf('made-late'))
    expect(refused).to.deep.equal({ kind: 'unavailable', effect: 'none' })
  })
})
