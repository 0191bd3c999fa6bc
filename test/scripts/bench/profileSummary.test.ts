import { expect } from 'chai'
import { type CpuProfile, moduleOf, summaryOf, summaryText } from '../../../scripts/bench/profileSummary.ts'

const ROOT = 'file:///repository/'
const frame = (functionName: string, url = '', lineNumber = 9) => ({ functionName, url, lineNumber })

const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)') },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('query', `${ROOT}node_modules/pg/lib/client.js`) },
    { id: 4, callFrame: frame('pay', `${ROOT}src/commands/payments.ts`) },
    { id: 5, callFrame: frame('(garbage collector)') },
    { id: 6, callFrame: frame('query', `${ROOT}node_modules/pg/lib/client.js`) },
  ],
  // Idle for 1 ms, pg for 2 ms and 1 ms in two stacks, ours for 4 ms, garbage for 1 ms up to the end.
  samples: [2, 3, 4, 4, 6, 5],
  timeDeltas: [100, 1000, 2000, 3000, 1000, 1000],
  startTime: 0,
  endTime: 9100,
}

describe('the summary of a CPU profile', () => {
  it('names npm packages, folders of the repository, modules of Node and native code', () => {
    const named = [
      frame('f', `${ROOT}node_modules/@grpc/grpc-js/build/src/call.js`),
      frame('f', `${ROOT}node_modules/a/node_modules/b/index.js`),
      frame('f', `${ROOT}src/adapters/postgres/database.ts`),
      frame('f', `${ROOT}streams/money.ts`),
      frame('f', 'node:internal/streams/writable'),
      frame('f', 'node:net'),
      frame('writev'),
      frame('(program)'),
    ].map(each => moduleOf(each, ROOT))
    expect(named).to.deep.equal([
      '@grpc/grpc-js',
      'b',
      'src/adapters/postgres',
      'streams',
      'node:streams',
      'node:net',
      '(native)',
      '(program)',
    ])
  })

  it('has the self time of each sample until the next one, without idle time', () => {
    const { durationMs, busyMs, modules, functions } = summaryOf(profile, ROOT)
    expect([durationMs, busyMs]).to.deep.equal([9.1, 8])
    expect(modules).to.deep.equal([
      { name: 'src/commands', ms: 4, share: 0.5 },
      { name: 'pg', ms: 3, share: 0.375 },
      { name: '(garbage collector)', ms: 1, share: 0.125 },
    ])
    expect(functions.map(({ name }) => name)).to.deep.equal([
      'pay payments.ts:10 in src/commands',
      'query client.js:10 in pg',
      '(garbage collector) in (garbage collector)',
    ])
  })

  it('is printed with the longest first', () => {
    const lines = summaryText('payments-64-src-main', summaryOf(profile, ROOT)).split('\n')
    expect(lines[0]).to.equal('payments-64-src-main: busy 8 of 9 ms')
    expect(lines[2]).to.match(/50\.0 % +4 ms {2}src\/commands/)
  })

  it('of a thread without samples is empty', () => {
    expect(summaryOf({ ...profile, samples: [], timeDeltas: [] }, ROOT)).to.deep.include({ busyMs: 0, modules: [] })
  })
})
