import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { constants, getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { filesOf, NAMED_FILES, planOf } from './plan.ts'
import { runPlan } from './pool.ts'
import { repeatingFilesOf, unitFilesOf } from './selection.ts'
import { filesToRunAgain, resultsOf } from './secondRun.ts'
import { removeFolder } from '../support/folders.ts'
import { openTemporaryFiles } from './temporaryFiles.ts'
import { startBackgroundWorker, type Worker } from './workerProcess.ts'

/** Tests of `npm test`, on test files that they create. */

const main = fileURLToPath(new URL('main.ts', import.meta.url))

/** The two parts are joined here, because the architecture test forbids the whole in any test. */
const itOnly = ['it', 'only'].join('.')

const FILES = {
  'passes.test.ts': `
    it('holds', () => {})
    it('holds too', () => console.log('said by a test'))`,
  'fails.test.ts': `
    import assert from 'node:assert'
    describe('arithmetic', () => it('adds', () => assert.deepEqual({ sum: 1 + 1 }, { sum: 3 })))`,
  'hook.test.ts': `
    before(() => { throw new Error('thrown by a hook') })
    it('is not reached', () => {})`,
  'one.test.ts': `
    ${itOnly}('is the only one', () => {})
    it('would not be run', () => {})`,
  'pending.test.ts': `it('is announced, and that is all')`,
  'rejects.test.ts': `it('leaves a rejection', async () => {
    void Promise.reject(new Error('nobody awaits this'))
    await new Promise(() => {})
  })`,
  'syntax.test.ts': `it('cannot be read', () => {`,
  'exits.test.ts': `it('ends its process', () => process.exit(0))`,
}
const HANGS = 'hangs.test.ts'
/** Holds the event loop, as an endless loop does, and takes no processor time from the other tests. */
const HOLD_LOOP = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'

/** A file whose first run does what `first` says; a mark in the folder tells the runs apart. */
const unsteady = (mark: string, first: string): string => `
  import { existsSync, writeFileSync } from 'node:fs'
  const isFirst = !existsSync('${mark}')
  writeFileSync('${mark}', '')
  it('is steady', () => {})
  it('is unsteady', async () => { if (isFirst) { ${first} } })`

type Ended = { readonly code: number | null; readonly output: string }

describe('npm test', () => {
  let folder: string
  /** Runs that wait for a time limit, started together and beside the others. */
  let waiting: Record<'hangs' | 'leavesOpen' | 'endsAndHangs', Promise<Ended>>
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-test-'))
    for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text)
    await writeFile(join(folder, HANGS), `it('holds the loop', () => { ${HOLD_LOOP} })`)
    await writeFile(join(folder, 'open.test.ts'), `it('leaves a timer', () => void setInterval(() => {}, 1000))`)
    const unsteadyFiles = [await unsteadyFile('ends', 'process.exit(3)'), await unsteadyFile('loops', HOLD_LOOP)]
    waiting = {
      hangs: run([HANGS], ['--once', '--file-max-ms', '3000']),
      leavesOpen: run(['open.test.ts'], ['--end-max-ms', '6000']),
      endsAndHangs: run(unsteadyFiles, ['--file-max-ms', '20000']),
    }
  })
  after(async () => {
    await Promise.all(Object.values(waiting))
    await removeFolder(folder)
  })

  const unsteadyFile = async (name: string, first: string): Promise<string> => {
    await writeFile(join(folder, `${name}.test.ts`), unsteady(join(folder, `${name}.mark`), first))
    return `${name}.test.ts`
  }

  const start = (
    args: readonly string[],
    CI = 'true',
  ): { child: ChildProcess; output: () => string; ended: Promise<Ended> } => {
    const child = spawn(process.execPath, [main, '--workers', '2', ...args], {
      env: { ...process.env, CI },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const ended = new Promise<Ended>(resolve => child.once('close', code => resolve({ code, output })))
    return { child, output: () => output, ended }
  }
  const run = (names: readonly string[], args: readonly string[] = []): Promise<Ended> =>
    start([...names.map(name => join(folder, name)), ...args]).ended

  it('succeeds when every file passes, and prints the counts as mocha does', async () => {
    const { code, output } = await run(['passes.test.ts'])
    expect(output).to.match(/^ {2}2 passing \(\d+s\)$/m)
    expect(output).to.match(/^ {2}0 failing$/m)
    expect(output).to.include('said by a test')
    expect(code).to.equal(0)
  })

  it('runs only the test cases that match --grep', async () => {
    const { output } = await run(['passes.test.ts'], ['--grep', 'too'])
    expect(output).to.match(/^ {2}1 passing/m)
  })

  it('fails when no file matches', async () => {
    const { code, output } = await run(['none.test.ts'])
    expect(output).to.include('none.test.ts')
    expect(code).to.equal(1)
  })

  describe('with failing files', () => {
    let ended: Ended
    before(async () => {
      ended = await run(Object.keys(FILES), ['--once'])
    })
    const failures = (): string => ended.output.slice(ended.output.indexOf('slowest files:'))
    const expectReport = (file: string, words: string): void => {
      const match = failures()
        .split(/^ {2}\d+\) /m)
        .find(text => text.includes(`in ${join(folder, file)}`) || text.includes(`after ${join(folder, file)}`))
      expect(match, file).to.include(words)
    }

    it('exits with code 1', () => expect(ended.code).to.equal(1))
    it('counts each failed test', () => {
      expect(ended.output).to.match(/^ {2}\d+ passing/m)
      expect(ended.output).to.match(/^ {2}7 failing$/m)
    })
    it('reports a failed test with its title, the difference and the stack', () => {
      expectReport('fails.test.ts', 'adds')
      expectReport('fails.test.ts', 'sum: 3')
      expectReport('fails.test.ts', 'fails.test.ts:3')
    })
    it('reports a hook that threw', () => expectReport('hook.test.ts', 'thrown by a hook'))
    it('does not accept .only', () => expectReport('one.test.ts', 'forbid'))
    it('does not accept a pending test', () => expectReport('pending.test.ts', 'forbid'))
    it('accepts both outside CI, where one works on a single case', async () => {
      const names = ['one.test.ts', 'pending.test.ts'].map(name => join(folder, name))
      const { code, output } = await start(names, '').ended
      expect(output).to.match(/^ {2}1 passing/m)
      expect(code).to.equal(0)
    })
    it('reports an unhandled rejection', () => expectReport('rejects.test.ts', 'nobody awaits this'))
    it('reports a file that cannot be loaded', () => expectReport('syntax.test.ts', 'cannot be loaded'))
    it('reports the file in which a worker ended', () =>
      expectReport('exits.test.ts', 'The worker ended (exit code 0)'))
    it('runs the other files', () => expect(ended.output).to.include('said by a test'))
  })

  it('reports the file in which a worker hangs', async () => {
    const { code, output } = await waiting.hangs
    expect(output).to.match(/^ {2}1 failing$/m)
    expect(output).to.match(/did not end within 3 s[^]*hangs\.test\.ts/)
    expect(code).to.equal(1)
  })

  it('reports a worker that does not exit because a test left a handle open', async () => {
    const { code, output } = await waiting.leavesOpen
    expect(output).to.match(/^ {2}1 failing$/m)
    expect(output).to.match(/did not exit as it should after .*open\.test\.ts: alive after 6 s/)
    expect(output).to.match(/^Open in the worker: .*Timeout/m)
    expect(code).to.equal(1)
  })

  describe('with files that fail once', () => {
    const SECTION = 'Failed beside others, passed alone'

    it('runs them again, alone and at the end, counts them as passed and prints their first errors', async () => {
      const file = await unsteadyFile('again', `throw new Error('only the first time')`)
      const { code, output } = await run([file, 'passes.test.ts'])
      expect(output).to.match(/^ {2}4 passing/m)
      expect(output).to.match(/^ {2}0 failing$/m)
      const section = output.slice(output.indexOf(SECTION))
      expect(section).to.match(
        / {2}1\) is unsteady:[^]*only the first time[^]*again\.test\.ts:\d+[^]*in .*again\.test\.ts/,
      )
      expect(code).to.equal(0)
    })
    it('runs a file again whose worker ended, and one whose worker hung', async () => {
      const { code, output } = await waiting.endsAndHangs
      expect(output).to.match(/^ {2}4 passing/m)
      const section = output.slice(output.indexOf(SECTION))
      expect(section).to.include('The worker ended (exit code 3)').and.to.include('did not end within 20 s')
      expect(code).to.equal(0)
    })
    it('fails when a case fails in both runs', async () => {
      const { code, output } = await run(['fails.test.ts', 'passes.test.ts'])
      expect(output).to.match(/^ {2}2 passing/m)
      expect(output).to.match(/^ {2}1 failing$/m)
      expect(output).not.to.include(SECTION)
      expect(code).to.equal(1)
    })
    it('runs none again with --once', async () => {
      const file = await unsteadyFile('once', `throw new Error('only the first time')`)
      const { code, output } = await run([file], ['--once'])
      expect(output).to.match(/^ {2}1 passing/m)
      expect(output).to.match(/^ {2}1 failing$/m)
      expect(code).to.equal(1)
    })
    it('runs none again when more than five have failed', async () => {
      const numbers = [1, 2, 3, 4, 5, 6]
      const files = await Promise.all(numbers.map(n => unsteadyFile(`many${n}`, `throw new Error('only once')`)))
      const { code, output } = await run(files)
      expect(output).to.match(/^ {2}6 passing/m)
      expect(output).to.match(/^ {2}6 failing$/m)
      expect(code).to.equal(1)
    })
  })

  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  for (const signal of ['SIGINT', 'SIGKILL'] as const)
    it(`ends its workers and the programs that they started on ${signal}`, async () => {
      const pids = join(folder, `${signal}.pids`)
      const text = `
        import { spawn } from 'node:child_process'
        import { writeFileSync } from 'node:fs'
        it('starts a program and waits', async () => {
          const { pid } = spawn('sleep', ['1000'], { stdio: 'ignore' })
          writeFileSync('${pids}', pid + ' ' + process.pid)
          await new Promise(() => {})
        })`
      await writeFile(join(folder, 'waits.test.ts'), text)
      const { child, ended } = start([join(folder, 'waits.test.ts')])
      const started = await eventually(() => readFile(pids, 'utf8').catch(() => ''))
      child.kill(signal)
      expect((await ended).code).to.equal(signal === 'SIGINT' ? 130 : null)
      const [program = 0, worker = 0] = started.split(' ').map(Number)
      await eventually(async () => !isAlive(program) && !isAlive(worker))
    })
})

describe('the temporary files of a test run', () => {
  it('have a folder of their own, which is removed with those of runs that were killed', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'ledger-test-'))
    const ended = spawnSync(process.execPath, ['--version']).pid
    const abandoned = join(parent, `ledger-tests-${ended}-a`)
    await mkdir(abandoned)
    const options = { isSet: false, isRoomy: true }
    const first = openTemporaryFiles(parent, options)
    const second = openTemporaryFiles(parent, options)
    expect(existsSync(abandoned)).to.equal(false)
    for (const one of [first, second]) expect(existsSync(one?.folder ?? '')).to.equal(true)
    for (const one of [first, second]) one?.remove()
    expect(await readdir(parent)).to.deep.equal([])
    await removeFolder(parent)
  })
  it('are where they always are without room in memory, or where TMPDIR is set', () => {
    expect(openTemporaryFiles('/none')).to.equal(undefined)
    expect(openTemporaryFiles('/none', { isSet: true, isRoomy: true })).to.equal(undefined)
  })
})

describe('the unit tests', () => {
  it('are the files that import nothing that starts or reaches another process', () => {
    const files = [
      'test/streams/order.test.ts',
      'test/fairness/sharedWork.test.ts',
      'test/http/resources/journey.test.ts',
      'test/feeds/projector.test.ts',
      'test/adapters/kafka.test.ts',
      'test/run/run.test.ts',
    ]
    expect(unitFilesOf(files)).to.deep.equal(files.slice(0, 2))
    expect(unitFilesOf(filesOf([])).length).to.be.above(80)
  })
})

describe('the files of a soak run with more repetitions', () => {
  it('are those whose number of repetitions depends on it', () => {
    const files = ['test/http/randomRequests.test.ts', 'test/streams/order.test.ts', 'test/faults/publisher.test.ts']
    expect(repeatingFilesOf(files)).to.deep.equal([files[0], files[2]])
  })
})

describe('the plan of a test run', () => {
  it('names existing files only', () => {
    const files = filesOf([])
    expect(NAMED_FILES.filter(file => !files.includes(file))).to.deep.equal([])
  })
  it('begins with the slowest files', () => {
    const { concurrent } = planOf(['test/a.test.ts', 'test/b.test.ts', 'test/c.test.ts'], {
      'test/a.test.ts': 1,
      'test/b.test.ts': 20,
    })
    expect(concurrent).to.deep.equal([['test/b.test.ts'], ['test/c.test.ts'], ['test/a.test.ts']])
  })
  it('has every file once, and runs the background and the exclusive files apart', () => {
    const background = 'test/simulation/simulation.test.ts'
    const exclusive = 'test/faults/attackers.test.ts'
    const kafka = ['test/adapters/kafka.test.ts', 'test/scripts/ledger/doctor.test.ts']
    const plan = planOf([...kafka, exclusive, background, 'test/a.test.ts'], {})
    expect(plan).to.deep.equal({
      concurrent: [kafka, ['test/a.test.ts']],
      background: [background],
      exclusive: [exclusive],
    })
  })
})

describe('a run of a plan', () => {
  it('has the background files beside the concurrent ones, on a worker of their own, and the exclusive files alone', async () => {
    const lines: string[] = []
    let running = 0
    const start = (kind = 'worker'): Worker => ({
      pid: undefined,
      run: async file => {
        running += 1
        lines.push(`${file} on a ${kind}, ${running} running`)
        await new Promise(setImmediate)
        running -= 1
        return { file, passed: 1, failures: [], tookMs: 1, output: '', isAlive: true }
      },
      end: async () => void lines.push(`the end of a ${kind}`),
      interrupt: async () => undefined,
    })
    const pool = { start, workers: 1, onFile: () => undefined, onFailure: () => undefined }
    const plan = { concurrent: [['a']], background: ['b'], exclusive: ['c'] }
    await runPlan(plan, { ...pool, signal: new AbortController().signal })
    expect(lines).to.deep.equal([
      'a on a worker, 1 running',
      'b on a background, 2 running',
      'the end of a worker',
      'the end of a background',
      'c on a worker, 1 running',
      'the end of a worker',
    ])
  })
})

describe('a background worker', () => {
  it('leaves the processors to other programs', async () => {
    const worker = startBackgroundWorker({ isColored: false }, { fileMaxMs: 60_000, endMaxMs: 60_000 })
    const priority = getPriority(worker.pid)
    expect(await worker.end()).to.equal(undefined)
    expect(priority).to.equal(constants.priority.PRIORITY_BELOW_NORMAL)
  })
})

describe('the second run of failed files', () => {
  const outcome = (file: string, failures: readonly string[] = []) => ({
    ...{ file, failures, passed: 2 - failures.length },
    ...{ tookMs: 1, output: '', isAlive: true },
  })
  const failedFiles = (count: number) => Array.from({ length: count }, (_, n) => outcome(`${n}`, ['failed']))

  it('is of the files that failed, five at most', () => {
    expect(filesToRunAgain([outcome('a'), outcome('b', ['failed'])])).to.deep.equal(['b'])
    expect(filesToRunAgain(failedFiles(5))).to.have.length(5)
    expect(filesToRunAgain(failedFiles(6))).to.deep.equal([])
  })
  it('replaces the first outcome, also by a failure of another case', () => {
    const first = [outcome('a'), outcome('b', ['one']), outcome('c', ['one'])]
    const second = [outcome('b'), outcome('c', ['another'])]
    const { final, unsteady } = resultsOf(first, second)
    expect(final).to.deep.equal([first[0], second[0], second[1]])
    expect(unsteady).to.deep.equal([first[1]])
  })
})
