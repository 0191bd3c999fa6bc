import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { enterPhase } from '../../../scripts/bench/profile.ts'
import { readThreads } from '../../../scripts/bench/profileFigures.ts'
import { HEAP_SUFFIX, PROFILE_SUFFIX, PROFILES_VARIABLE, THREAD_SUFFIX } from '../../../scripts/bench/profileFiles.ts'
import { type CpuProfile, summaryOf } from '../../../scripts/bench/profileSummary.ts'
import { temporaryDirectory } from '../../support/service.ts'

const PROFILER = new URL('../../../scripts/bench/profiler.ts', import.meta.url).href

/** A program with a worker thread, both of which are busy in a function of their own. */
const PROGRAM = `
import { writeSync } from 'node:fs'
import { isMainThread, Worker } from 'node:worker_threads'
if (isMainThread) new Worker(new URL(import.meta.url))
const busyInMain = () => { for (const end = performance.now() + 5; performance.now() < end;); }
const busyInWorker = () => { for (const end = performance.now() + 5; performance.now() < end;); }
const report = isMainThread ? 'main' : 'worker'
setInterval(() => {
  if (isMainThread) busyInMain()
  else busyInWorker()
  writeSync(1, report + '\\n')
}, 10)
`

/** Code that was optimized before the profiler began has no inlined functions in the profile. */
const NOT_OPTIMIZED = ['--no-opt', '--no-maglev']

/** Busy periods of each thread in a phase: hundreds of sampling intervals, because a busy machine may miss many samples. */
const TIMES_BUSY = 60
/** Looking must not take processor time from the program. */
const tick = (): Promise<void> => sleep(10)

describe('the profiler in a process of the service', () => {
  let child: ChildProcess
  afterEach(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })

  it('writes a profile and counts of each thread and phase, of that phase alone, and allocations in place of CPU time', async () => {
    const directory = await temporaryDirectory()
    const program = join(directory, 'program.mjs')
    await writeFile(program, PROGRAM)
    const env = { ...process.env, NODE_OPTIONS: `--import ${PROFILER}`, [PROFILES_VARIABLE]: directory }
    const busy = spawn(process.execPath, [...NOT_OPTIMIZED, program], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    child = busy
    const times = { main: 0, worker: 0 }
    createInterface({ input: busy.stdout }).on('line', line => {
      if (line === 'main' || line === 'worker') times[line] += 1
    })
    const filesThatEnd = async (end: string) => (await readdir(directory)).filter(name => name.endsWith(end))
    while ((await filesThatEnd(THREAD_SUFFIX)).length < 2) await tick()

    const functionsBusyIn = async (phase: string): Promise<string[]> => {
      await enterPhase(directory, phase)
      const before = { ...times }
      while (Math.min(times.main - before.main, times.worker - before.worker) < TIMES_BUSY) await tick()
      await enterPhase(directory, '')
      const names = (await filesThatEnd(PROFILE_SUFFIX)).filter(name => name.startsWith(`${phase}-`))
      const texts = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
      const summaries = texts.map(text =>
        summaryOf(JSON.parse(text) as CpuProfile, new URL(`file://${directory}/`).href),
      )
      return summaries.flatMap(({ functions }) =>
        functions.map(({ name }) => /^busyIn\w+/.exec(name)?.[0] ?? '').filter(name => name !== ''),
      )
    }
    expect((await functionsBusyIn('first')).toSorted()).to.deep.equal(['busyInMain', 'busyInWorker'])
    expect((await functionsBusyIn('second')).toSorted()).to.deep.equal(['busyInMain', 'busyInWorker'])
    expect(await filesThatEnd(PROFILE_SUFFIX)).to.have.length(4)
    const figures = (await readThreads(directory, 'second')).map(each => each.figures)
    expect(figures).to.have.length(2)
    for (const { utilization } of figures) expect(utilization).to.be.within(0, 1).and.not.equal(0)

    await enterPhase(directory, 'third-heap')
    await enterPhase(directory, '')
    expect(await filesThatEnd(PROFILE_SUFFIX)).to.have.length(4)
    expect(await filesThatEnd(HEAP_SUFFIX)).to.have.length(2)
  })
})
