import { spawn } from 'node:child_process'
import { chmod, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { removeFolder } from './folders.ts'
import { findWorkingProgram, whyNoBroker } from './programs.ts'
import { temporaryDirectory } from './service.ts'

/** A machine that has the programs that tests look for, and none of them works. */

const FAILS = '#!/bin/sh\necho broken >&2\nexit 1\n'
const JAVA_RUNS = '#!/bin/sh\necho \'openjdk version "21.0.1"\' >&2\n'
const OPTIONAL = ['java', 'mvn', 'kcat', 'chromium', 'chromium-browser', 'google-chrome', 'promtool', 'prometheus']
/** One file for each kind of program, whose cases without it take little time. */
const FILES = ['test/faults/consume.test.ts', 'test/adapters/kafka.test.ts', 'test/browser/login.test.ts']

describe('programs that tests find on the PATH', () => {
  const path = process.env.PATH ?? ''
  let folder: string
  beforeEach(async () => {
    folder = await temporaryDirectory()
  })
  afterEach(async () => {
    process.env.PATH = path
    await removeFolder(folder)
  })

  const putOnPath = async (programs: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(programs)) {
      await writeFile(join(folder, name), text)
      await chmod(join(folder, name), 0o755)
    }
    process.env.PATH = `${folder}${delimiter}${path}`
  }

  it('are found if they work, and only then', async () => {
    await putOnPath({ works: '#!/bin/sh\ntest "$1" = --version\n', fails: FAILS, unreadable: '#!/no/such/shell\n' })
    const actual = ['works', 'fails', 'unreadable', 'missing'].map(name => findWorkingProgram(name, ['--version']))
    expect(actual).to.deep.equal([join(folder, 'works'), undefined, undefined, undefined])
    expect(findWorkingProgram('works', ['--help'])).to.equal(undefined)
  })

  it('start no broker where Maven cannot fetch its jars, or Java does not run, and the reason is known', async () => {
    const libs = join(folder, 'libs')
    await putOnPath({ java: JAVA_RUNS, mvn: '#!/bin/sh\necho "[ERROR] repo.maven.apache.org: unknown host"\nexit 1\n' })
    expect(await whyNoBroker(libs)).to.equal(
      'Maven could not fetch the jars of Kafka: repo.maven.apache.org: unknown host',
    )
    await putOnPath({ mvn: FAILS })
    expect(await whyNoBroker(libs)).to.equal('Maven could not fetch the jars of Kafka: broken')
    expect((await readdir(folder)).toSorted()).to.deep.equal(['java', 'mvn'])
    await putOnPath({ java: FAILS })
    expect(await whyNoBroker(libs)).to.match(/^Kafka needs java and mvn, and no java on the PATH works: /)
  })

  it('fail no test run when none of them works; it says what was not run', async () => {
    await putOnPath(Object.fromEntries(OPTIONAL.map(name => [name, FAILS])))
    const root = fileURLToPath(new URL('../..', import.meta.url))
    const { KAFKA_BROKERS: _, ...env } = process.env
    const runner = spawn(process.execPath, ['test/run/main.ts', '--once', ...FILES], { cwd: root, env })
    let output = ''
    for (const stream of [runner.stdout, runner.stderr]) stream.on('data', (chunk: Buffer) => (output += String(chunk)))
    const code = await new Promise(resolve => runner.once('close', resolve))
    expect(output).to.match(/^ {2}0 failing$/m)
    expect(code, output).to.equal(0)
    expect(output).to.include('the tests that need one of their own are not run: Kafka needs java and mvn')
    expect(output).to.include('is not run, because its broker cannot be started: Kafka needs java and mvn')
    expect(output).to.include('on the PATH works; not run: login, consent and error pages in a real browser.')
  })
})
