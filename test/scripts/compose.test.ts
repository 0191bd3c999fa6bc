import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { startPrometheus } from '../compose/prometheus.ts'
import { filesUnder } from '../architecture/repository.ts'
import { importsOf } from '../architecture/source.ts'
import { anOrder, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { findWorkingProgram } from '../support/programs.ts'
import { sharedService, type TestService } from '../support/service.ts'

/**
 * The files of the compose set-up: what Dockerfile and docker-compose.yml promise (test/soak/containers.test.ts runs them),
 * and those that concern metrics: alerts, dashboards and the configuration of Prometheus.
 */

const ROOT = new URL('../../', import.meta.url)
const FOLDER = fileURLToPath(new URL('scripts/compose/', ROOT))
const textOf = (path: string): Promise<string> => readFile(new URL(path, ROOT), 'utf8')
const fileOf = (name: string): Promise<string> => readFile(join(FOLDER, name), 'utf8')
const run = promisify(execFile)

/** Metrics of others than the service in one process: Prometheus' own, those that the collector makes of spans. */
const OF_OTHERS = new Set(['up', 'ALERTS', 'traces_span_metrics_calls_total', 'ledger_process_up'])

/** Every label that a metric of the service may have: closed sets of values alone, never ids, keys, tenants or texts. */
const LABELS = new Set([
  'route',
  'status_class',
  'error_code',
  'api_version',
  'le',
  'process',
  'dependency',
  'feed',
  'state',
  'delivery',
])
/** An id of a resource, a UUID, an address or a text of several words, which a route template is not. */
const UNBOUNDED = /[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}-[0-9a-f]{4}-|\d+\.\d+\.\d+\.\d+|@/

/** The names of the metrics in a PromQL expression: words that are no function, keyword, label or text. */
const metricsIn = (expression: string): readonly string[] => {
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  return [...bare.matchAll(/\b[a-zA-Z_:][\w:]*\b(?!\s*\()/g)]
    .map(([name]) => name)
    .filter(name => name.length > 1 && !/^(and|or|unless|by|e\d+|bool)$/.test(name))
}

const expressionsOfAlerts = async (): Promise<readonly string[]> =>
  [...(await fileOf('alerts.yaml')).matchAll(/expr: (?:>-\n((?: {10}.*\n)+)|(.*)\n)/g)].map(
    ([, folded = '', line = '']) => `${folded}${line}`,
  )

const expressionsOfDashboards = async (): Promise<readonly string[]> =>
  [...(await fileOf('grafana/dashboards/ledger.json')).matchAll(/"expr": (".*")/g)].map(
    ([, text = '']) => JSON.parse(text) as string,
  )

const withPrometheus = (service: () => TestService, scrape: () => Promise<string>): void => {
  it('have a configuration and alerts that promtool accepts', async () => {
    await run('promtool', ['check', 'config', 'prometheus.yaml'], { cwd: FOLDER })
  })

  it('are well-formed to promtool', async () => {
    const checked = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
    let errors = ''
    checked.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    checked.stdin.end(await scrape())
    const code = await new Promise(resolve => checked.once('close', resolve))
    expect([code, errors]).to.deep.equal([0, ''])
  })

  it('are scraped by Prometheus with the configuration of the compose set-up', async () => {
    const target = new URL(service().addresses.metrics ?? '').host
    const prometheus = await startPrometheus({
      configuration: usual => {
        const own = usual.replace("['api:9464', 'feeds:9464']", `['${target}']`).replace('10s', '1s')
        expect(own).to.include(target)
        return own
      },
    })
    const { ask, valueOf } = prometheus
    try {
      await eventually(async () => (await valueOf('up{job="ledger"}')) === '1')
      await eventually(async () => (await valueOf('min(ledger_dependency_up{dependency="postgres"})')) === '1')
      expect(Number(await valueOf('sum(ledger_http_request_duration_seconds_count)'))).to.be.at.least(3)
      const { groups } = (await ask('rules')).data
      const rules = groups.flatMap(group => group.rules)
      expect(rules.length).to.be.at.least(9)
      expect(rules.map(({ lastError = '' }) => lastError).filter(Boolean)).to.deep.equal([])
    } finally {
      await prometheus.close()
    }
  })
}

describe('the image of the service', () => {
  it('is installed without what only development needs, runs without rights, and stops by a signal', async () => {
    const [build = '', final = ''] = (await textOf('Dockerfile')).split(/^FROM gcr/m)
    expect(build).to.include('npm ci --omit=dev --omit=optional --ignore-scripts')
    expect(build).to.match(/^FROM node:24\.\d+\.\d+-bookworm-slim AS build$/m)
    expect(final).not.to.match(/^RUN/m)
    for (const line of ['USER 65532:65532', 'STOPSIGNAL SIGTERM', 'VOLUME /var/lib/ledger'])
      expect(final).to.include(`\n${line}\n`)
    expect(final).to.include('LEDGER_DATA_DIR=/var/lib/ledger')
  })

  it('gets every file that the command line of the operators imports', async () => {
    const included = [...(await textOf('.dockerignore')).matchAll(/^!(.+)$/gm)].map(([, path = '']) => path)
    const isIncluded = (path: string): boolean => included.some(name => path === name || path.startsWith(`${name}/`))
    const imported = filesUnder('scripts')
      .filter(path => path.endsWith('.ts') && isIncluded(path))
      .map(path => ({ path, text: readFileSync(new URL(path, ROOT), 'utf8') }))
      .flatMap(importsOf)
      .filter(({ target, typeOnly }) => target.endsWith('.ts') && !typeOnly)
    expect(imported.length).to.be.above(100)
    expect(imported.map(({ target }) => target).filter(path => !isIncluded(path))).to.deep.equal([])
  })
})

describe('docker-compose.yml', () => {
  it('names each image by an exact tag', async () => {
    const images = [...(await textOf('docker-compose.yml')).matchAll(/^ +image: (.+)$/gm)].map(
      ([, image = '']) => image,
    )
    expect(images).to.include('kurrentplatform/kurrentdb:26.0.3').and.to.have.length(7)
    expect(images.filter(image => !/:(?:v?\d+(?:\.\d+)+(?:-alpine)?|local)$/.test(image))).to.deep.equal([])
  })

  it('runs the service read-only and without rights, with a volume for its heads', async () => {
    const service = /^x-service: &service\n(?: .+\n)+/m.exec(await textOf('docker-compose.yml'))?.[0]
    for (const line of [
      'cap_drop: [ALL]',
      "security_opt: ['no-new-privileges:true']",
      'read_only: true',
      'tmpfs: [/tmp]',
      "volumes: ['ledger:/var/lib/ledger']",
    ])
      expect(service).to.include(`\n  ${line}\n`)
  })

  it('sets the event store up by the variables of its version, without secondary indexes', async () => {
    const compose = await textOf('docker-compose.yml')
    expect(compose).to.include("  KURRENTDB__SECONDARYINDEXING__ENABLED: 'false'\n")
    expect(compose).not.to.match(/^ +EVENTSTORE_(?!URL)\w+:/m)
  })
})

describe('the metrics of the service', () => {
  let service: TestService
  const scrape = async (): Promise<string> => {
    const response = await fetch(service.addresses.metrics ?? '')
    expect(response.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8')
    return response.text()
  }
  const seriesIn = (text: string): readonly string[] =>
    text.split('\n').filter(line => line !== '' && !line.startsWith('#'))

  before(async () => {
    service = await sharedService()
    const tenant = 'metrics-of-this-tenant'
    const client = clientOf(service.api, await service.token({ tenant }))
    const made = await client.post('/orders', anOrder())
    await client.get(`/orders/${made.body.id}`)
    await client.get('/orders?unknown=1')
  })

  it('have every metric that an alert or a dashboard names', async () => {
    const text = await scrape()
    const known = new Set(seriesIn(text).map(line => /^[^{ ]+/.exec(line)?.[0]))
    const alerts = await expressionsOfAlerts()
    const dashboards = await expressionsOfDashboards()
    expect([alerts.length, dashboards.length], 'expressions found').to.satisfy(
      ([rules = 0, panels = 0]) => rules >= 9 && panels >= 12,
    )
    const named = new Set([...alerts, ...dashboards].flatMap(metricsIn))
    expect([...named].filter(name => !known.has(name) && !OF_OTHERS.has(name))).to.deep.equal([])
    expect(named.size).to.be.at.least(8)
  })

  it('have labels of closed sets alone, and no id, key, tenant or address in a value', async () => {
    const pairs = seriesIn(await scrape()).flatMap(line => [...line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)])
    expect([...new Set(pairs.map(([, label = '']) => label))].filter(label => !LABELS.has(label))).to.deep.equal([])
    const values = pairs.map(([, , value = '']) => value)
    expect(values.filter(value => UNBOUNDED.test(value) || value.includes('metrics-of-this-tenant'))).to.deep.equal([])
    expect(values).to.include('GET /orders/{id}').and.to.include('unknown_parameter')
  })

  it('are at no other path, and not at the port of the API', async () => {
    const { metrics } = service.addresses
    expect((await fetch(new URL('/', metrics ?? ''))).status).to.equal(404)
    expect((await fetch(`${service.api}/metrics`)).status).to.equal(404)
  })

  const missing = ['promtool', 'prometheus'].filter(name => findWorkingProgram(name, ['--version']) === undefined)
  if (missing.length > 0)
    it(`are not scraped, and the alerts not checked, because no ${missing.join(' and no ')} works here`, () => {
      expect(missing).not.to.deep.equal([])
    })
  else describe('with Prometheus', () => withPrometheus(() => service, scrape))
})
