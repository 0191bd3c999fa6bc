import { expect } from 'chai'
import { allocationsOf } from '../../../scripts/bench/heapSummary.ts'
import { accessesOf, type PostgresReading, postgresPerOperation } from '../../../scripts/bench/postgresFigures.ts'
import { countedBy, type PaymentFigures } from '../../../scripts/bench/profileFigures.ts'
import type { FiguresFile } from '../../../scripts/bench/profileFiles.ts'
import { figuresText } from '../../../scripts/bench/profileTables.ts'
import { type CallFigures, messageCounter } from '../../../scripts/bench/threadFigures.ts'
import { framed } from '../../../src/grpc/framing.ts'

const PATH = '/streams/Read'
const call = (count: number): CallFigures => ({
  calls: count,
  messagesSent: count,
  writes: count,
  bytesSent: count,
  messagesReceived: count,
  chunksReceived: count,
  bytesReceived: count,
})

const file = (thread: number, utilization: number, statements: Readonly<Record<string, number>>): FiguresFile => ({
  pid: 7,
  program: 'src-main',
  phase: 'payments-1',
  thread,
  figures: {
    utilization,
    delayMs: { p50: 1, p99: 2, max: 3 },
    collections: { minor: { count: 4, ms: 5 } },
    statements,
    calls: { [PATH]: call(10) },
  },
})

const files = [file(0, 0.1, { 'select 1': 5 }), file(1, 0.9, { 'select 1': 10, commit: 40 })]

describe('the counts of threads in a phase', () => {
  it('are summed by statement and by gRPC method, for each payment, with the busiest thread first', () => {
    const { threads, calls, statements } = countedBy(files, 20)
    expect(threads.map(({ name }) => name)).to.deep.equal(['src-main-7-1', 'src-main-7-0'])
    expect(calls).to.deep.equal({ [PATH]: call(1) })
    expect(statements).to.deep.equal([
      { program: 'src-main', text: 'commit', calls: 2 },
      { program: 'src-main', text: 'select 1', calls: 0.75 },
    ])
  })

  it('are printed with what is for each payment, and say when the system has no /proc', () => {
    const figures: PaymentFigures = {
      ...countedBy(files, 20),
      payments: 20,
      seconds: 4,
      system: {},
      postgres: { server: { commits: 1.5, 'WAL syncs': null }, tables: [] },
      postgresIdle: { server: { commits: 0.5, 'WAL syncs': null }, tables: [] },
      allocations: [{ name: 'src-main-7-1', bytes: 12_300, functions: [{ name: 'pay payments.ts:1', bytes: 12_300 }] }],
    }
    const text = figuresText('payments-1', figures)
    expect(text).to.contain('payments-1: 20 payments in 4.0 s')
    expect(text).to.match(/src-main-7-1 +90\.0 % +1\.0 ms +2\.0 ms +3\.0 ms +4 in 5 ms/)
    expect(text).to.match(/^ +0\.75 {2}src-main {2}select 1$/m)
    expect(text).to.contain('Postgres: commits 1.5, WAL syncs –')
    expect(text).to.contain('idle seconds after the payments: commits 0.5')
    expect(text).to.contain('no /proc')
    expect(text).to.match(/12\.3 kB {2}pay payments\.ts:1/)
  })
})

describe('the messages of a gRPC call', () => {
  it('are counted however they are divided into chunks', () => {
    const bytes = framed([new Uint8Array(3), new Uint8Array(0), new Uint8Array(300)])
    for (const size of [1, 2, 4, 5, 6, 8, 13, bytes.length]) {
      const count = messageCounter()
      let ended = 0
      for (let at = 0; at < bytes.length; at += size) ended += count(bytes.subarray(at, at + size))
      expect(ended, `chunks of ${size}`).to.equal(3)
    }
  })

  it('are counted when they end', () => {
    const bytes = framed([new Uint8Array(3)])
    const count = messageCounter()
    expect([count(bytes.subarray(0, 7)), count(bytes.subarray(7))]).to.deep.equal([0, 1])
  })
})

describe('the counts of Postgres', () => {
  const table = (name: string, scans: number) => ({
    table: name,
    sequentialScans: scans,
    rowsOfSequentialScans: 10 * scans,
    indexScans: scans,
    rowsOfIndexScans: scans,
    rowsWritten: 0,
  })

  it('are differences for each payment, without tables that were not touched', () => {
    const before: PostgresReading = {
      server: { commits: 10, 'WAL syncs': null },
      tables: [table('a', 1), table('b', 2)],
    }
    const after: PostgresReading = {
      server: { commits: 40, 'WAL syncs': null },
      tables: [table('a', 1), table('b', 8), table('c', 3)],
    }
    const { server, tables } = postgresPerOperation(before, after, 3)
    expect(server).to.deep.equal({ commits: 10, 'WAL syncs': null })
    expect(tables.map(each => [each.table, each.sequentialScans, each.rowsOfSequentialScans])).to.deep.equal([
      ['b', 2, 20],
      ['c', 1, 10],
    ])
  })

  it('have the accesses to tables of a plan, without what is done to their rows', () => {
    const plan = {
      'Node Type': 'ModifyTable',
      'Relation Name': 'payments',
      Plans: [
        {
          'Node Type': 'Nested Loop',
          Plans: [
            { 'Node Type': 'Seq Scan', 'Relation Name': 'orders' },
            { 'Node Type': 'Index Scan', 'Relation Name': 'payments', 'Index Name': 'payments_pkey' },
            { 'Node Type': 'Function Scan' },
          ],
        },
      ],
    }
    expect(accessesOf(plan)).to.deep.equal(['Seq Scan orders', 'Index Scan payments_pkey'])
  })
})

describe('the summary of allocations', () => {
  it('has the bytes of each function in all its stacks, the most first', () => {
    const frame = (functionName: string) => ({ functionName, url: 'file:///repository/src/a.ts', lineNumber: 0 })
    const leaf = (name: string, selfSize: number) => ({ callFrame: frame(name), selfSize, children: [] })
    const head = {
      callFrame: { functionName: '(root)', url: '', lineNumber: -1 },
      selfSize: 0,
      children: [{ ...leaf('pay', 100), children: [leaf('hash', 250)] }, leaf('pay', 200)],
    }
    const { bytes, functions } = allocationsOf({ head }, 'file:///repository/')
    expect(bytes).to.equal(550)
    expect(functions).to.deep.equal([
      { name: 'pay a.ts:1 in src', bytes: 300 },
      { name: 'hash a.ts:1 in src', bytes: 250 },
    ])
  })
})
