import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { root } from '../architecture/repository.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { findWorkingProgram } from '../support/programs.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { temporaryDirectory } from '../support/service.ts'
import { NPM } from './cli.ts'

/**
 * FIRST_HOUR.md, followed word for word but for the ports: its blocks in the order of the page, in one shell; those whose
 * name begins with `start` each in a terminal of their own.
 */

const BLOCK = /^```sh (?<name>\w+)\n(?<code>[^]*?)^```$/gm
const PORTS = ['8080', '8081', '8082', '9464', '9465', '9466', '9090']
/** Blocks that need Prometheus; without it the others are run. */
const OF_PROMETHEUS = new Set(['targets', 'startPrometheus', 'metrics', 'alert', 'recovered'])
/** Settings of the test run itself. */
const NO_EXTERNAL_STORES = ['EVENTSTORE_URL', 'DATABASE_URL', 'KAFKA_BROKERS', 'OIDC_ISSUER', 'OIDC_AUDIENCE', 'PORT']

/** By block: what its output promises, in the words of the page. */
const PROMISES: Readonly<Record<string, readonly RegExp[]>> = {
  refused: [/EVENTSTORE_URL, DATABASE_URL, KAFKA_BROKERS, OIDC_ISSUER, OIDC_AUDIENCE are not set/],
  doctor: [/^No problems were found\.$/m],
  payment: [/^approved$/m, /^HTTP\/1\.1 201 Created/m, /"state":"succeeded"/],
  metrics: [/route="POST \/payments", status_class="2xx"/],
  kill: [/^HTTP\/1\.1 201 Created/m, /^idempotent-replayed: true/im],
  alert: [/alertname="LedgerUnreachable"/],
  verify: [/^No problems were found\.$/m, /^Intact\.$/m, /^idempotent-replayed: true/im],
  suspend: [/^acme is suspended$/m, /^403$/m],
  reinstate: [/^acme is not suspended$/m, /^200$/m],
}

type Terminal = { readonly child: ChildProcess; readonly output: () => string; readonly ended: Promise<unknown> }

describe('the first hour', () => {
  let folder: string
  let environment: NodeJS.ProcessEnv
  let ports: ReadonlyMap<string, string>
  let shell: Terminal
  const terminals = new Map<string, Terminal>()
  const hasPrometheus = ['prometheus', 'promtool'].every(name => findWorkingProgram(name, ['--version']))

  const open = (args: readonly string[]): Terminal => {
    const child = spawn('bash', args, { cwd: root, env: environment, detached: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    return { child, output: () => output, ended: new Promise(resolve => child.once('close', resolve)) }
  }

  const onOwnPorts = (code: string): string =>
    [...ports].reduce((text, [documented, own]) => text.replaceAll(documented, own), code)

  before(async () => {
    folder = await temporaryDirectory()
    environment = Object.fromEntries(
      Object.entries({ ...process.env, HOUR: join(folder, 'hour'), ROOT: root, NODE_ENV: 'development' }).filter(
        ([name]) => !NO_EXTERNAL_STORES.includes(name),
      ),
    )
    const free: string[] = []
    while (free.length < PORTS.length) {
      const port = String(await findFreePort('127.0.0.1'))
      if (!free.includes(port)) free.push(port)
    }
    ports = new Map(PORTS.map((port, index) => [port, free[index] ?? '']))
    // In place of an initdb.
    await putPreparedCluster(join(folder, 'hour/one/postgres'))
    shell = open(['-euo', 'pipefail', '-s'])
    shell.child.stdin?.write(NPM)
  })
  /** As Ctrl-C does. */
  const stop = async ({ child, ended }: Terminal): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT')
    child.stdin?.end()
    await ended
  }
  /** The last one first: instance one has the stores of the others. */
  const stopTerminals = async (): Promise<void> => {
    for (const terminal of [...terminals.values()].toReversed()) await stop(terminal)
  }

  after(async () => {
    await stopTerminals()
    await stop(shell)
    await removeFolder(folder)
  })

  /** The output of the block, once it has ended. */
  const run = async (code: string): Promise<string> => {
    const before = shell.output().length
    const end = `end of block ${before}`
    shell.child.stdin?.write(`${onOwnPorts(code)}\necho; echo '${end}'\n`)
    const output = (): string => shell.output().slice(before)
    const found = eventually(() => {
      if (shell.child.exitCode !== null) throw new Error(`The shell ended with ${shell.child.exitCode}.`)
      return output().includes(end) && output()
    })
    return found.catch((error: unknown) => expect.fail(`${String(error)}\n${code}\n${output()}`))
  }

  const READY = /^ready$|Server is ready to receive web requests/m

  const start = async (name: string, code: string): Promise<void> => {
    const terminal = open(['-euo', 'pipefail', '-c', onOwnPorts(code)])
    terminals.set(name, terminal)
    await eventually(() => {
      if (terminal.child.exitCode !== null) throw new Error(`${name} ended:\n${terminal.output()}`)
      return READY.test(terminal.output())
    })
  }

  /** Every second instead of ten, and for one second instead of a minute: the test does not wait for a time. */
  const hurryPrometheus = async (): Promise<void> => {
    for (const name of ['prometheus.yaml', 'alerts.yaml']) {
      const file = join(folder, 'hour', name)
      const text = await readFile(file, 'utf8')
      await writeFile(file, text.replaceAll('interval: 10s', 'interval: 1s').replaceAll('for: 1m', 'for: 1s'))
    }
  }

  it('does what its page promises, block by block', async () => {
    const page = await readFile(join(root, 'scripts/ledger/FIRST_HOUR.md'), 'utf8')
    const blocks = new Map(
      [...page.matchAll(BLOCK)].map(({ groups }) => [groups?.['name'] ?? '', groups?.['code'] ?? '']),
    )
    expect([...blocks.keys()]).to.include.members([...Object.keys(PROMISES), ...OF_PROMETHEUS])
    expect(blocks.size, 'blocks with a name').to.equal(page.match(/^```sh/gm)?.length)
    const outputs = new Map<string, string>()
    for (const [name, code] of blocks) {
      // "Start instance two again."
      if (name === 'recovered') await start('startTwo', blocks.get('startTwo') ?? '')
      if (OF_PROMETHEUS.has(name) && !hasPrometheus) continue
      if (name === 'clean') await stopTerminals()
      if (name.startsWith('start')) await start(name, code)
      else outputs.set(name, await run(code.replaceAll('sleep 5', 'sleep 1')))
      if (name === 'targets') await hurryPrometheus()
      for (const promise of PROMISES[name] ?? [])
        if (outputs.has(name)) expect(outputs.get(name), name).to.match(promise)
    }
    const [id] = /"id":"(pay_\w+)"/.exec(outputs.get('payment') ?? '')?.slice(1) ?? []
    expect(id).to.be.a('string')
    for (const again of ['kill', 'verify']) expect(outputs.get(again)).to.include(`"id":"${id}"`)
  })

  if (!hasPrometheus)
    it('shows no metrics, because Prometheus is missing here', () => {
      expect(findWorkingProgram('prometheus', ['--version']) && findWorkingProgram('promtool', ['--version'])).to.equal(
        undefined,
      )
    })
})
