import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readSystem, systemPerOperation } from '../../../scripts/bench/systemFigures.ts'
import { temporaryDirectory } from '../../support/service.ts'

type Counts = { readonly calls: number; readonly faults: number; readonly switches: Readonly<Record<string, number>> }

/** A process in a folder like /proc. */
const write = async (proc: string, [pid, parent]: readonly [number, number], { calls, faults, switches }: Counts) => {
  const folder = join(proc, `${pid}`)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const stat = `${pid} (a) b) S ${parent} 1 1 0 -1 4194560 ${faults} 5 9 9 1 1 1 1 20 0 11 0 5000 1000000 5000 0 0\n`
  await writeFile(join(folder, 'stat'), stat)
  await writeFile(join(folder, 'io'), `rchar: 1\nwchar: 2\nsyscr: ${calls}\nsyscw: ${2 * calls}\nread_bytes: 3\n`)
  for (const [thread, count] of Object.entries(switches)) {
    await mkdir(join(folder, 'task', thread), { recursive: true })
    const lines = `Name:\ta\nvoluntary_ctxt_switches:\t${count}\nnonvoluntary_ctxt_switches:\t${3 * count}\n`
    await writeFile(join(folder, 'task', thread, 'status'), lines)
  }
}

const readingOf = async (proc: string) => (await readSystem({ root: 10 }, proc)) ?? expect.fail('No reading.')

describe('the system figures of processes', () => {
  it('are the differences of two readings of a process, its threads and its descendants', async () => {
    const proc = await temporaryDirectory()
    await write(proc, [10, 1], { calls: 100, faults: 20, switches: { 10: 5, 11: 7 } })
    await write(proc, [20, 10], { calls: 50, faults: 10, switches: { 20: 1 } })
    await write(proc, [30, 1], { calls: 999, faults: 999, switches: { 30: 999 } })
    const before = await readingOf(proc)
    // Thread 11 has ended, and thread 12 has begun.
    await write(proc, [10, 1], { calls: 110, faults: 24, switches: { 10: 9, 12: 4 } })
    await write(proc, [20, 10], { calls: 60, faults: 14, switches: { 20: 3 } })
    expect(systemPerOperation(before, await readingOf(proc), 10)).to.deep.equal({
      'read calls': 2,
      'write calls': 4,
      'voluntary switches': 1,
      'involuntary switches': 3,
      'minor faults': 0.8,
    })
  })

  it('are left out without /proc, and without the right to read it', async () => {
    const proc = await temporaryDirectory()
    expect(await readSystem({ root: 10 }, join(proc, 'none'))).to.equal(undefined)
    await write(proc, [10, 1], { calls: 1, faults: 1, switches: { 10: 1 } })
    await rm(join(proc, '10', 'io'))
    expect(await readSystem({ root: 10 }, proc)).to.equal(undefined)
  })
})
