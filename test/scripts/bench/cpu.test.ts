import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  cpuMsOf,
  cpuPerOperation,
  openCpuMeter,
  processGroups,
  readStats,
  statOf,
} from '../../../scripts/bench/processes.ts'
import { temporaryDirectory } from '../../support/service.ts'

/** One line of /proc/<pid>/stat with times in ticks of 10 ms. */
const statText = (pid: number, parent: number, times: readonly [number, number, number, number], name = 'node') =>
  `${pid} (${name}) S ${parent} 1 1 0 -1 4194560 100 0 0 0 ${times.join(' ')} 20 0 11 0 5000 1000000 5000 0 0\n`

describe('the CPU time of processes', () => {
  it('is read from a line of proc(5), with any name of the program', () => {
    for (const name of ['node', 'postgres: ledger', 'a) S 9 9 (b', ')'])
      expect(statOf(statText(4711, 12, [250, 50, 7, 3], name))).to.deep.equal({
        pid: 4711,
        parent: 12,
        ownMs: 3000,
        endedChildrenMs: 100,
      })
  })

  const stats = [
    statText(1, 0, [1000, 0, 0, 0]),
    statText(10, 1, [100, 10, 5, 0]), // the service
    statText(11, 10, [1, 0, 0, 0]), // a worker of the service
    statText(20, 10, [0, 0, 0, 0]), // the program that starts Postgres
    statText(21, 20, [20, 5, 30, 0]), // Postgres, with a backend that has ended
    statText(22, 21, [40, 0, 0, 0]), // a backend
    statText(30, 10, [60, 0, 0, 0]), // the event store
    statText(40, 1, [999, 0, 0, 0]), // another process
  ].map(statOf)

  it('is summed over the tree of a process, with children that have ended', () => {
    expect(cpuMsOf(stats, { root: 20 })).to.equal(950)
    expect(cpuMsOf(stats, { root: 10 })).to.equal(1150 + 10 + 950 + 600)
  })

  it('is counted for the service without its dependencies, and for the generator without its children', () => {
    const groups = processGroups({ service: 10, postgres: 20, eventstore: 30 }, 40)
    expect(Object.keys(groups)).to.deep.equal(['service', 'event store', 'Postgres', 'Kafka', 'load generator'])
    const service = groups.service ?? expect.fail('No service.')
    expect(cpuMsOf(stats, service)).to.equal(1160)
    expect(cpuMsOf(stats, { root: 10, alone: true })).to.equal(1100)
  })

  it('is the difference of two readings for each operation, of the processes that were read twice', () => {
    const before = { service: 100, Postgres: 50 }
    expect(cpuPerOperation(before, { service: 400, Kafka: 9 }, 200)).to.deep.equal({ service: 1.5 })
  })

  it('is not a number for a process that has ended', () => {
    expect(cpuMsOf(stats, { root: 99 })).to.satisfy(Number.isNaN)
  })

  it('is left out, with the reason in the log, on a system without /proc', async () => {
    const lines: string[] = []
    const log = (line: string): void => void lines.push(line)
    expect(await openCpuMeter({}, log, join(await temporaryDirectory(), 'proc'))).to.equal(undefined)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.contain('no /proc')
  })

  it('is read from a folder like /proc, without entries that are no processes and processes that end', async () => {
    const proc = await temporaryDirectory()
    for (const name of ['7', '8', 'self', 'meminfo']) await mkdir(join(proc, name))
    await writeFile(join(proc, '7', 'stat'), statText(7, 1, [1, 2, 3, 4]))
    await writeFile(join(proc, 'self', 'stat'), statText(7, 1, [1, 2, 3, 4]))
    expect(await readStats(proc)).to.deep.equal([{ pid: 7, parent: 1, ownMs: 30, endedChildrenMs: 70 }])
  })
})
