import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { ensureJars } from '../../scripts/kafka/jars.ts'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { eventually } from '../support/eventually.ts'
import { kafkaKind, readTopic, useClassArchive } from '../support/kafka.ts'
import { removeFolder } from '../support/folders.ts'

const MAIN = fileURLToPath(new URL('../../scripts/kafka/main.ts', import.meta.url))
const LIBS = fileURLToPath(new URL('../../.data/kafka-libs', import.meta.url))

const READY_MAX_MS = 240_000

type Running = { readonly process: ChildProcess; readonly out: () => string; readonly err: () => string }

/** Runs the script; with `onlyNode` the PATH has only `node`. */
const run = (args: readonly string[], onlyNode = false): Running => {
  const env = onlyNode ? { PATH: dirname(process.execPath) } : process.env
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()))
  return { process: child, out: () => output.out, err: () => output.err }
}

const ended = async ({ process: child }: Running): Promise<number | null> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  return child.exitCode
}

const ready = (broker: Running): Promise<boolean> =>
  eventually(async () => {
    if (broker.process.exitCode !== null) throw new Error(`It ended: ${broker.err()}`)
    return broker.out().endsWith('ready\n')
  }, READY_MAX_MS)

/** A zombie counts as ended, since a container may have no init process that reaps orphans. */
const isAlive = (pid: number): boolean => {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

const jvmOf = async (dataDir: string): Promise<number> =>
  Number((await readFile(join(dataDir, 'kafka.pid'), 'utf8')).split(' ')[0])

const publishOne = async (broker: Running, topic: string): Promise<readonly string[]> => {
  const brokers = [broker.out().split('\n')[0] ?? '']
  const ignore = (): void => undefined
  const logger = { warn: ignore, info: ignore, debug: ignore }
  const bus = openFactBus({ brokers, clientId: 'tests', logger })
  await bus.ensureTopics([{ topic, partitions: 1, retentionMs: 604_800_000 }])
  await bus.publish([{ topic, key: 'k', headers: {}, value: 'v' }])
  await bus.close()
  return (await readTopic(brokers, topic)).map(({ value }) => value)
}

describe('npm run kafka', () => {
  let folder: string
  let dataDir: string
  let started: Running[]

  const start = (...args: string[]): Running => {
    const broker = run(['--port', '0', '--data-dir', dataDir, ...args])
    started.push(broker)
    return broker
  }

  beforeEach(async () => {
    useClassArchive()
    folder = await mkdtemp(join(tmpdir(), 'ledger-kafka-'))
    dataDir = join(folder, 'data of, a broker')
    started = []
  })
  afterEach(async () => {
    for (const broker of started) {
      broker.process.kill('SIGTERM')
      await ended(broker)
    }
    await removeFolder(folder)
  })

  it('reports missing Java with instructions', async () => {
    const broker = run(['--port', '0', '--data-dir', dataDir], true)
    expect(await ended(broker)).to.equal(1)
    expect(broker.err()).to.equal(
      'Kafka needs java and mvn, and no java on the PATH works: install both (apt-get install ' +
        'default-jre-headless maven), or set KAFKA_BROKERS to a running broker.\n',
    )
    expect(broker.out()).to.equal('')
  })

  it('refuses an invalid port', async () => {
    const broker = run(['--port', '70000'])
    expect(await ended(broker)).to.equal(1)
    expect(broker.err()).to.contain('A port is a number from 0 to 65535.')
  })

  if (kafkaKind !== 'real') return

  it('prints its addresses, then ready; stops gracefully at SIGTERM; keeps its data and users', async () => {
    const first = start('--sasl', '--user', 'carol:s3cret')
    await ready(first)
    expect(first.out()).to.match(/^127\.0\.0\.1:\d+\nsasl 127\.0\.0\.1:\d+\nready\n$/)
    const users = first.err().match(/^user \S+$/gm)
    expect(users?.map(user => user.split(':')[0])).to.deep.equal([
      'user ledger',
      'user alice',
      'user bob',
      'user carol',
    ])
    expect(await publishOne(first, 'kept')).to.deep.equal(['v'])
    const jvm = await jvmOf(dataDir)
    first.process.kill('SIGTERM')
    expect(await ended(first)).to.equal(0)
    expect(isAlive(jvm), 'the JVM').to.equal(false)

    const second = start('--sasl')
    await ready(second)
    expect(second.err().match(/^user \S+$/gm)).to.deep.equal(users)
    expect(await publishOne(second, 'kept')).to.deep.equal(['v', 'v'])
  })

  it('refuses a folder and a port in use with one sentence, and leaves their owner running', async () => {
    const first = start()
    await ready(first)
    const same = start()
    expect(await ended(same)).to.equal(1)
    const jvm = await jvmOf(dataDir)
    expect(same.err()).to.equal(`Another broker (pid ${jvm}) runs on ${dataDir}; give another --data-dir.\n`)
    const port = first.out().split('\n')[0]?.split(':')[1] ?? ''
    const other = run(['--port', port, '--data-dir', `${dataDir}2`])
    expect(await ended(other)).to.equal(1)
    expect(other.err()).to.match(new RegExp(`^Port ${port} of 127.0.0.1 is in use; .+\\n$`))
    expect(await publishOne(first, 'after-refusals')).to.deep.equal(['v'])
  })

  it('leaves no JVM behind when it is killed, and starts again at once in the same folder', async () => {
    const first = start()
    await ready(first)
    await publishOne(first, 'kept')
    const jvm = await jvmOf(dataDir)
    first.process.kill('SIGKILL')
    await ended(first)
    const second = start()
    await ready(second)
    expect(isAlive(jvm), 'the first JVM').to.equal(false)
    expect(await publishOne(second, 'kept')).to.deep.equal(['v', 'v'])
    const next = await jvmOf(dataDir)
    second.process.kill('SIGKILL')
    await eventually(async () => !isAlive(next))
  })

  it('reports the end of the broker, and exits with code 1', async () => {
    const broker = start()
    await ready(broker)
    process.kill(await jvmOf(dataDir), 'SIGKILL')
    expect(await ended(broker)).to.equal(1)
    expect(broker.err()).to.contain('Kafka ended by itself')
  })

  it('starts after a first start was killed while it formatted the storage', async () => {
    await mkdir(join(dataDir, 'log.new'), { recursive: true })
    await writeFile(join(dataDir, 'log.new', 'meta.properties'), 'version=1\ncluster.id=half')
    const broker = start()
    await ready(broker)
    expect(await readdir(dataDir))
      .to.include('log')
      .and.not.include('log.new')
  })

  it('fetches the jars again when one of them is damaged', async () => {
    await ensureJars(LIBS, () => undefined)
    const copy = join(folder, 'libs')
    await cp(LIBS, copy, { recursive: true })
    const reports: string[] = []
    await ensureJars(copy, line => reports.push(line))
    expect(reports, 'with intact jars').to.deep.equal([])
    const jar = (await readdir(copy)).find(name => name.startsWith('kafka-clients')) ?? ''
    await appendFile(join(copy, jar), 'x')
    await ensureJars(copy, line => reports.push(line))
    expect(reports).to.have.length(1)
    expect(await readFile(join(copy, jar))).to.deep.equal(await readFile(join(LIBS, jar)))
  })

  it('fetches the jars into a folder that is relative to the working directory', async () => {
    const libs = join(folder, 'fetched')
    await ensureJars(relative(process.cwd(), libs), () => undefined)
    expect(await readdir(libs)).to.deep.equal(await readdir(LIBS))
  })
})
