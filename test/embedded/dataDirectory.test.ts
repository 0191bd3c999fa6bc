import { chmod, stat, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { directoryRefusal, holderOf, openDataDirectory } from '../../src/embedded/dataDirectory.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { endPrograms, type Program, removeFolder, runProgram, temporaryFolder } from './childProcesses.ts'
import { sharedService } from '../support/service.ts'

const MODULE = pathToFileURL(join(import.meta.dirname, '../../src/embedded/dataDirectory.ts')).href

/** Another process that locks the directory, prints `ready`, and keeps the lock. */
const holder = (path: string): Program =>
  runProgram([
    '--input-type=module',
    '-e',
    `import { openDataDirectory } from ${JSON.stringify(MODULE)}
     await openDataDirectory(${JSON.stringify(path)})
     console.log('ready'); setInterval(() => {}, 1000)`,
  ])

const messageOf = async (promise: Promise<unknown>): Promise<string> => {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).to.be.instanceOf(StartupError)
  return error instanceof Error ? error.message : ''
}

describe('the data directory', () => {
  let folder: string
  let path: string
  beforeEach(async () => {
    folder = await temporaryFolder()
    path = join(folder, 'a', 'b')
  })
  afterEach(async () => {
    await endPrograms()
    await removeFolder(folder)
  })

  it('is created, is locked once, and can be locked again after its release', async () => {
    const first = await openDataDirectory(path)
    expect(first.path).to.equal(path)
    const inUse = `The data directory ${path} is in use by process ${process.pid}, which runs a service on it. Stop it first.`
    expect(await messageOf(openDataDirectory(path))).to.equal(inUse)
    await first.release()
    await first.release()
    const second = await openDataDirectory(path)
    await second.release()
  })

  it('is refused with the pid of the process that holds it, also while that is stopped', async () => {
    const other = holder(path)
    await other.ready
    other.process.kill('SIGSTOP')
    const inUse = `The data directory ${path} is in use by process ${other.pid}, which runs a service on it. Stop it first.`
    expect(await messageOf(openDataDirectory(path))).to.equal(inUse)
  })

  it('is taken over at once from a killed holder', async () => {
    const other = holder(path)
    await other.ready
    other.process.kill('SIGKILL')
    await other.exited
    await (await openDataDirectory(path)).release()
  })

  it('has the holder that has the lock, whatever process has the recorded pid', async () => {
    expect(await holderOf(path)).to.equal(undefined)
    const other = holder(path)
    await other.ready
    other.process.kill('SIGSTOP')
    expect(await holderOf(path)).to.equal(other.pid)
    other.process.kill('SIGKILL')
    await other.exited
    await writeFile(join(path, 'lock.pid'), `${process.pid}\n`)
    expect(await holderOf(path)).to.equal(undefined)
  })

  it('can be opened while other processes ask for its holder', async () => {
    await (await openDataDirectory(path)).release()
    const asking = runProgram([
      '--input-type=module',
      '-e',
      `import { holderOf } from ${JSON.stringify(MODULE)}
       console.log('ready'); for (;;) await holderOf(${JSON.stringify(path)})`,
    ])
    await asking.ready
    for (let opened = 0; opened < 100; opened++) await (await openDataDirectory(path)).release()
  })

  it('is not blocked by a living process with the recorded pid', async () => {
    await mkdir(path, { recursive: true })
    await writeFile(join(path, 'lock.pid'), `${process.ppid}\n`)
    await (await openDataDirectory(path)).release()
  })

  it('is given to exactly one of many concurrent processes', async () => {
    const all = Array.from({ length: 6 }, () => holder(path))
    const outcomes = await Promise.allSettled(
      all.map(
        async one =>
          await Promise.race([one.ready, one.exited.then(({ stderr }) => Promise.reject(new Error(stderr)))]),
      ),
    )
    expect(outcomes.filter(outcome => outcome.status === 'fulfilled')).to.have.length(1)
  })

  it('waits for a holder that is about to end, for the given time', async () => {
    const other = holder(path)
    await other.ready
    setTimeout(() => other.process.kill('SIGKILL'), 300)
    await (await openDataDirectory(path, { waitMs: 120_000 })).release()
  })

  it('is private, also one that was readable for others', async () => {
    const modeOf = async (): Promise<number> => (await stat(path)).mode & 0o777
    await (await openDataDirectory(path)).release()
    expect(await modeOf()).to.equal(0o700)
    await chmod(path, 0o755)
    await (await openDataDirectory(path)).release()
    expect(await modeOf()).to.equal(0o700)
  })

  it('has private lock files, also those that were readable for others, and keeps its lock while it makes them so', async () => {
    const FILES = ['lock', 'lock-journal', 'lock.pid']
    const modesOf = async (): Promise<string[]> => {
      const files = await Promise.all(FILES.map(async name => await stat(join(path, name))))
      return files.map(({ mode }) => (mode & 0o777).toString(8))
    }
    const fresh = await openDataDirectory(path)
    expect(await modesOf()).to.deep.equal(['600', '600', '600'])
    await fresh.release()
    for (const name of ['lock', 'lock.pid']) await chmod(join(path, name), 0o644)
    const taken = await openDataDirectory(path)
    expect(await modesOf()).to.deep.equal(['600', '600', '600'])
    await messageOf(openDataDirectory(path))
    const other = holder(path)
    expect((await other.exited).stderr, 'the attempts in this process have not released the lock').to.contain('in use')
    await taken.release()
  })

  it('has a private log', async () => {
    const { dataDir } = await sharedService()
    expect((await stat(join(dataDir, 'ledger.log'))).mode & 0o777).to.equal(0o600)
  })

  it('is left unchanged where everybody may write, such as /tmp', async () => {
    await mkdir(path, { recursive: true })
    await chmod(path, 0o1777)
    await (await openDataDirectory(path)).release()
    expect((await stat(path)).mode & 0o7777).to.equal(0o1777)
  })

  it('is refused in one sentence when it is no directory or its disk is full', async () => {
    const file = join(folder, 'file')
    await writeFile(file, '')
    expect(await messageOf(openDataDirectory(file))).to.equal(`The data directory ${file} is not a directory (EEXIST).`)
    const below = join(file, 'below')
    expect(await messageOf(openDataDirectory(below))).to.equal(
      `The data directory ${below} is not a directory (ENOTDIR).`,
    )
    const full = directoryRefusal(path, Object.assign(new Error('write'), { code: 'ENOSPC' }))
    expect(full)
      .to.be.instanceOf(StartupError)
      .with.property('message', `The data directory ${path} has no space left on its disk (ENOSPC).`)
    const bug = new TypeError('a bug')
    expect(directoryRefusal(path, bug)).to.equal(bug)
  })
})
