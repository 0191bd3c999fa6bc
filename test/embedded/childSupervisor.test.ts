import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { Client } from 'pg'
import { type Child, type ChildOptions, startChild } from '../../src/embedded/childSupervisor.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { endPrograms, pidsOf, POSTGRES, removeFolder, runProgram, temporaryFolder } from './childProcesses.ts'
import { eventually } from '../support/eventually.ts'

const source = (file: string): string => pathToFileURL(join(import.meta.dirname, '../../src/embedded', file)).href

/** A small child process with a real server: it sends its pid to each client, and records its events in a file. */
const CHILD_MODULE = `
import { createServer } from 'node:net'
import { appendFileSync } from 'node:fs'
import { runAsChild } from '${source('childMain.ts')}'
import { findFreePort } from '${source('freePorts.ts')}'
await runAsChild(async ({ dataDir, port }) => {
  if (dataDir.endsWith('broken')) { console.error('this child is'); console.error('broken'); process.exit(3) }
  if (dataDir.endsWith('silent')) await new Promise(() => setInterval(() => {}, 1000))
  if (dataDir.endsWith('bug')) throw new TypeError('a bug in the child')
  const server = createServer(socket => socket.end(String(process.pid)))
  server.listen(port || (await findFreePort('127.0.0.1')), '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  console.error('listening')
  const close = async () => {
    appendFileSync(dataDir + '.closed', 'closed ')
    if (dataDir.endsWith('stubborn')) await new Promise(() => setInterval(() => {}, 1000))
    server.close()
  }
  return { address: 'esdb://127.0.0.1:' + server.address().port + '?tls=false', close }
})`

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
  let child: Child | undefined
  const log: string[] = []
  const options = (name: string): ChildOptions => ({
    name,
    module,
    args: ['--data-dir', join(folder, name), '--port', '0'],
    log: line => log.push(line),
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
    child = await startChild({ ...options('good'), exitsMax: 3, onExit: reason => void (exit = reason) })
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
    expect(exit?.message).to.equal('The process good ended 3 times within a minute.')
    expect(child.address).to.equal(address)
    expect(await pidsOf(folder)).to.deep.equal([])
  })

  it('rejects its first start with its last output when that fails', async () => {
    expect(await failureOf(startChild(options('broken')))).to.equal(
      'The process broken did not start: this child is broken',
    )
    expect(await failureOf(startChild(options('bug')))).to.match(
      /^The process bug did not start: TypeError: a bug in the child/,
    )
    const missing = await failureOf(startChild({ ...options('good'), args: [] }))
    expect(missing).to.equal('The process good did not start: --data-dir is missing.')
    const port = await failureOf(startChild({ ...options('good'), args: ['--data-dir', folder, '--port', '70000'] }))
    expect(port).to.equal('The process good did not start: --port must be a number from 0 to 65535, not 70000.')
  })

  it('rejects a start that takes too long, and leaves no process behind', async () => {
    const late = await failureOf(startChild({ ...options('silent'), startMaxMs: 500 }))
    expect(late).to.equal('The process silent was not ready in 500 ms.')
    await eventually(async () => (await pidsOf(folder)).length === 0)
  })

  it('is killed when it does not stop within the grace period', async () => {
    child = await startChild({ ...options('stubborn'), stopMaxMs: 300 })
    const { pid } = child
    const beganMs = performance.now()
    await child.stop()
    expect(performance.now() - beganMs).to.be.at.least(290)
    expect(isGone(pid)).to.equal(true)
    expect(await closed('stubborn')).to.equal('closed ')
  })

  it('stops also while it is being restarted', async () => {
    child = await startChild(options('good'))
    process.kill(child.pid, 'SIGKILL')
    await eventually(() => log.some(line => line.includes('started again')))
    await child.stop()
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(await pidsOf(folder)).to.deep.equal([])
  })

  it('ends gracefully when its parent is killed by SIGKILL', async () => {
    const { args } = options('good')
    const parent = runProgram([
      '--input-type=module',
      '-e',
      `import { startChild } from '${source('childSupervisor.ts')}'
       const child = await startChild({ name: 'good', module: ${JSON.stringify(module)}, args: ${JSON.stringify(args)} })
       console.log(child.pid); console.log('ready')`,
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
      args: ['--data-dir', dataDir],
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
