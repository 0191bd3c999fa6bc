import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { pidsOf } from '../embedded/childProcesses.ts'
import { eventually } from '../support/eventually.ts'
import { createDistances } from './affectedTests.ts'
import { ROOT } from './treeCopy.ts'
import { failedTestIn } from './mochaReport.ts'
import { createStages, HTTP_SUITES } from './stages.ts'
import { mutants } from './mutants.ts'

const START_MAX_MS = 120_000

describe('npm run mutants', () => {
  const [, units, contracts] = createStages({ folder: ROOT, scratch: tmpdir() }, 1)

  it('finds the tests that load a file and ignores imports of types', () => {
    const from = createDistances(ROOT)
    expect(from('test/streams/invoice.test.ts').get('streams/invoice/decider.ts')).to.be.within(1, 2)
    expect(from('test/streams/money.test.ts').has('streams/invoice/decider.ts')).to.equal(false)
    expect(from('test/streams/money.test.ts').get('test/streams/money.test.ts')).to.equal(0)
  })

  it('finds the tests that start a program by its path', () => {
    expect(
      createDistances(ROOT)('test/adapters/eventstoredb.test.ts').has('src/embedded/eventstore/appendDecision.ts'),
    ).to.equal(true)
  })

  it('runs tests on Postgres as unit tests for bugs in their layer', () => {
    const files = mutants
      .filter(({ file }) => file === 'src/feeds/deliveryWithParking.ts')
      .map(bug => units?.commandsFor(bug).flat())
    for (const command of files) expect(command).to.include('test/feeds/parking.test.ts')
  })

  it('names existing HTTP suites only', () => {
    expect(HTTP_SUITES.filter(path => !existsSync(join(ROOT, path)))).to.deep.equal([])
  })

  for (const bug of mutants)
    it(`has a test below the simulation that loads: ${bug.name}`, () => {
      expect([...(units?.commandsFor(bug) ?? []), ...(contracts?.commandsFor(bug) ?? [])]).not.to.deep.equal([])
    })

  it('reads the file, title and message of the failed test from a report', () => {
    const passed = '<testcase classname="a" name="b" file="/x/b.test.ts" time="0.1"/>'
    const failed = `<testcase classname="a list" name="says &quot;no&quot;" file="/x/c.test.ts" time="0"><failure>1 &#x3C; 2
AssertionError: at</failure></testcase>`
    expect(failedTestIn(`${passed}\n${failed}`)).to.deep.equal({
      file: '/x/c.test.ts',
      title: 'a list says "no"',
      message: '1 < 2',
    })
    expect(failedTestIn(passed)).to.equal(undefined)
  })

  it('leaves no process and no file behind when interrupted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-test-'))
    const args = [
      join(ROOT, 'test/mutants/main.ts'),
      '--only',
      '^a checkpoint can move backwards$',
      '--stages',
      'unit tests',
    ]
    const child = spawn(process.execPath, args, { env: { ...process.env, TMPDIR: folder }, stdio: 'ignore' })
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
    await eventually(async () => (await pidsOf(folder)).length > 0, START_MAX_MS)
    child.kill('SIGINT')
    expect(await ended).to.equal(130)
    expect([await pidsOf(folder), await readdir(folder)]).to.deep.equal([[], []])
    await rm(folder, { recursive: true })
  })
})
