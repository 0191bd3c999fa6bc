import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { Client } from 'pg'
import type { ChildOperations } from '../../src/childProcesses/protocol.ts'
import type { Supervision } from '../../src/childProcesses/supervisor.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import {
  endPrograms,
  pidsOf,
  POSTGRES,
  removeFolder,
  runProgram,
  startChild,
  temporaryFolder,
  type TestChild,
} from './childProcesses.ts'
import { eventually } from '../support/eventually.ts'

const source = (file: string): string => pathToFileURL(join(import.meta.dirname, '../../src', file)).href

/** A small child process with a real server: it sends its pid to each client, and records its events in a file. */
const CHILD_MODULE = `
import { createServer } from 'node:net'
import { appendFileSync } from 'node:fs'
import { runAsChild } from '${source('childProcesses/childMain.ts')}'
import { findFreePort } from '${source('embedded/freePorts.ts')}'
const [dataDir, port] = process.argv.slice(2)
const start = async ({ cleanup }) => {
  if (dataDir.endsWith('broken')) { console.error('this child is'); console.error('broken'); process.exit(3) }
  if (dataDir.endsWith('silent')) await new Promise(() => setInterval(() => {}, 1000))
  if (dataDir.endsWith('bug')) throw new TypeError('a bug in the child')
  const server = createServer(socket => socket.end(String(process.pid)))
  server.listen(Number(port) || (await findFreePort('127.0.0.1')), '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  console.error('listening')
  cleanup.defer(async () => {
    appendFileSync(dataDir + '.closed', 'closed ')
    if (dataDir.endsWith('stubborn')) await new Promise(() => setInterval(() => {}, 1000))
    server.close()
  })
  return 'esdb://127.0.0.1:' + server.address().port + '?tls=false'
}
runAsChild({ start, closeMaxMs: 5000 })`

const isGone = (pid: number): boolean => {
  try {
    return process.kill(pid, 0) && false
  } catch {
    return true
  }
}

const failureOf = async (promise: Promise<unknown>): Promise<string> => {
  const error: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).to.be.instanceOf(StartupError)
  return error instanceof Error ? error.message : ''
}

describe('a supervised child process', () => {
  let folder: string
  let module: string
  let child: TestChild | undefined
  const log: string[] = []
  const options = (name: string): Supervision<ChildOperations> => ({
    name,
    module,
    args: port => [join(folder, name), port],
    log: line => log.push(line),
    onEnded: how => log.push(`ended: ${how}`),
  })
  const closed = async (name: string): Promise<string> =>
    await readFile(join(folder, `${name}.closed`), 'utf8').catch(() => '')

  beforeEach(async () => {
    folder = await temporaryFolder()
    module = join(folder, 'child.ts')
    await writeFile(module, CHILD_MODULE)
    log.length = 0
  })
  afterEach(async () => {
    await child?.stop()
    child = undefined
    await endPrograms()
    await eventually(async () => (await pidsOf(folder)).length === 0)
    await removeFolder(folder)
  })

  it('has an address when it is ready, is in its own process group, and stops gracefully', async () => {
    child = await startChild({ ...options('good'), module: pathToFileURL(module) })
    expect(child.address).to.match(/^esdb:\/\/127\.0\.0\.1:\d+\?tls=false$/)
    const fields = (await readFile(`/proc/${child.pid}/stat`, 'utf8')).split(' ')
    expect(Number(fields[4])).to.equal(child.pid)
    expect(log).to.deep.equal(['listening'])
    const { pid } = child
    await child.stop()
    await child.stop()
    expect(isGone(pid)).to.equal(true)
    expect(await closed('good')).to.equal('closed ')
  })

  it('is restarted on the same port when it is killed, and no more after too many exits', async () => {
    let exit: Error | undefined
    child = await startChild({ ...options('good'), endsMax: 3, onGivenUp: reason => void (exit = reason) })
    const { address } = child
    for (let kill = 1; kill <= 2; kill++) {
      const before = child.pid
      process.kill(before, 'SIGKILL')
      await eventually(() => log.filter(line => line === 'listening').length === kill + 1)
      expect(child.pid).not.to.equal(before)
      const answer = await fetch(`http://127.0.0.1:${new URL(address).port}`).catch((error: Error) =>
        String(error.cause),
      )
      expect(answer).to.match(/Parse|other side/i)
      expect(exit).to.equal(undefined)
    }
    process.kill(child.pid, 'SIGKILL')
    await eventually(() => exit !== undefined)
    expect(exit?.message).to.equal('The process good ended 3 times within a minute (SIGKILL).')
    expect(child.address).to.equal(address)
    expect(await pidsOf(folder)).to.deep.equal([])
  })

  it('rejects its first start with its last output when that fails', async () => {
    expect(await failureOf(startChild(options('broken')))).to.equal('The process broken ended: this child is broken.')
    expect(await failureOf(startChild(options('bug')))).to.match(/^TypeError: a bug in the child\n +at /)
    const missing = join(folder, 'missing.ts')
    expect(await failureOf(startChild({ ...options('good'), module: missing }))).to.include('Cannot find module')
  })

  it('rejects a start that takes too long, and leaves no process behind', async () => {
    const late = await failureOf(startChild({ ...options('silent'), startMaxMs: 500 }))
    expect(late).to.equal('The process silent was not ready in 500 ms.')
    await eventually(async () => (await pidsOf(folder)).length === 0)
  })

  it('is killed when it does not stop within the grace period', async () => {
    child = await startChild(options('stubborn'))
    const { pid } = child
    const beganMs = performance.now()
    await child.stop(300)
    expect(performance.now() - beganMs).to.be.at.least(290)
    expect(isGone(pid)).to.equal(true)
    expect(await closed('stubborn')).to.equal('closed ')
  })

  it('is killed and replaced when it hangs', async () => {
    child = await startChild({ ...options('good'), askEveryMs: 50 })
    const before = child.pid
    process.kill(before, 'SIGSTOP')
    await eventually(() => log.filter(line => line === 'listening').length === 2)
    expect(log).to.include('ended: SIGKILL, because it did not answer')
    expect(isGone(before)).to.equal(true)
  })

  it('is ended by its parent alone, and by no signal', async () => {
    child = await startChild(options('good'))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(child.pid, signal)
    const { pid } = child
    await new Promise(resolve => setTimeout(resolve, 300))
    expect([child.pid, isGone(pid), await closed('good')]).to.deep.equal([pid, false, ''])
  })

  it('stops also while it is being restarted', async () => {
    child = await startChild(options('good'))
    process.kill(child.pid, 'SIGKILL')
    await eventually(() => log.some(line => line.startsWith('ended')))
    await child.stop()
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(await pidsOf(folder)).to.deep.equal([])
  })

  it('ends gracefully when its parent is killed by SIGKILL', async () => {
    const parent = runProgram([
      '--input-type=module',
      '-e',
      `import { superviseChild } from '${source('childProcesses/supervisor.ts')}'
       const args = port => [${JSON.stringify(join(folder, 'good'))}, port]
       const child = superviseChild({ name: 'good', module: ${JSON.stringify(module)}, nodeOptions: [], args, log: () => {} })
       await child.ready
       console.log(child.current().pid); console.log('ready')`,
    ])
    const pid = Number((await parent.ready)[0])
    expect(isGone(pid)).to.equal(false)
    parent.process.kill('SIGKILL')
    await eventually(() => isGone(pid))
    expect(await closed('good')).to.equal('closed ')
  })

  it('is restarted as an embedded Postgres whose supervisor or server is killed', async () => {
    const dataDir = join(folder, 'pg')
    child = await startChild({
      name: 'postgres',
      module: POSTGRES,
      args: port => ['--data-dir', dataDir, '--port', port],
      log: line => log.push(line),
    })
    const { address } = child
    const answers = async (): Promise<boolean> => {
      const client = new Client({ connectionString: address })
      client.on('error', () => undefined)
      return await client.connect().then(
        async () => await client.end().then(() => true),
        () => false,
      )
    }
    const serverPid = async () =>
      Number.parseInt(await readFile(join(dataDir, 'cluster/postmaster.pid'), 'utf8').catch(() => '0'), 10)
    for (const killed of ['supervisor', 'server']) {
      const before = await serverPid()
      process.kill(killed === 'supervisor' ? child.pid : before, 'SIGKILL')
      await eventually(async () => (await serverPid()) > 0 && (await serverPid()) !== before && (await answers()))
    }
    expect(await answers()).to.equal(true)
  })
})
