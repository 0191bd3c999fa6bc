import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { type Config, readConfig, SETTINGS } from '../../src/settings/config.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { SHUTDOWN_MAX_MS } from '../../src/settings/timeBudgets.ts'
import { findWorkingProgram } from '../support/programs.ts'
import { sharedService } from '../support/service.ts'
import { type Container, faultsOf, type Labels, type Manifest, type PodSpec, violationsOf } from './manifests.ts'

/** The Helm chart: linted, rendered with each file of values in ci/, and checked. It is not installed: there is no cluster. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const CHART = join(root, 'scripts/deploy/payment-ledger')
const textOf = (path: string): Promise<string> => readFile(join(root, path), 'utf8')
const run = promisify(execFile)

const VALUES = readdirSync(join(CHART, 'ci'))
/** The oldest version that Chart.yaml permits, and a present one. */
const KUBERNETES = ['1.30.0', '1.34.0']

type DeploymentManifest = Manifest & {
  readonly spec: {
    readonly replicas?: number
    readonly selector: { readonly matchLabels: Labels }
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
  }
}
type Data = Manifest & { readonly data: Readonly<Record<string, string>> }

const helm = async (...args: readonly string[]): Promise<string> => (await run('helm', args)).stdout

const valuesIn = (file: string): readonly string[] => ['--values', join(CHART, 'ci', file)]

const render = async (file: string, ...more: readonly string[]): Promise<Manifest[]> => {
  const text = await helm('template', 'ledger', CHART, ...valuesIn(file), ...more)
  return parseAllDocuments(text).flatMap(document => (document.toJS() as Manifest | null) ?? [])
}

const ofKind = <T extends Manifest>(all: readonly Manifest[], kind: string): T[] =>
  all.filter((one): one is T => one.kind === kind)

const deploymentsIn = (all: readonly Manifest[]) => ofKind<DeploymentManifest>(all, 'Deployment')
const podOf = ({ spec }: DeploymentManifest): PodSpec => spec.template.spec
const containerOf = (deployment: DeploymentManifest): Container =>
  podOf(deployment).containers[0] ?? expect.fail(`${deployment.metadata.name} has no container.`)

const selects = (selector: Labels, labels: Labels): boolean =>
  Object.entries(selector).every(([name, value]) => labels[name] === value)

/** What the Secrets of an installation contain. */
const SECRETS: Readonly<Record<string, string>> = {
  DATABASE_URL: 'postgres://ledger:secret@postgres.example.com/ledger?sslmode=verify-full',
  EVENTSTORE_URL: 'esdb://ledger:secret@eventstore.example.com:2113?tls=true',
  KAFKA_SASL_USERNAME: 'ledger',
  KAFKA_SASL_PASSWORD: 'secret',
  API_KEY_PEPPER: 'a pepper of at least 32 characters',
  EVIDENCE_SIGNING_KEY: 'a key',
}

const environmentOf = (all: readonly Manifest[], deployment: DeploymentManifest): Record<string, string> => {
  const { env, envFrom } = containerOf(deployment)
  const maps = envFrom.map(({ configMapRef: { name } }) => {
    const map = ofKind<Data>(all, 'ConfigMap').find(({ metadata }) => metadata.name === name)
    return map?.data ?? expect.fail(`There is no ConfigMap ${name}.`)
  })
  const own = env.map(({ name, value = SECRETS[name] ?? expect.fail(`${name} is no secret.`) }) => [name, value])
  return Object.assign({}, ...maps, Object.fromEntries(own) as object) as Record<string, string>
}

/** The settings with which the service starts in a pod. */
const configOf = (all: readonly Manifest[], component: string): Config => {
  const deployment = deploymentsIn(all).find(({ metadata }) => metadata.name.endsWith(`-${component}`))
  return readConfig(environmentOf(all, deployment ?? expect.fail(`There is no Deployment of ${component}.`)))
}

/** The names by which the objects refer to each other. */
const checkReferences = (all: readonly Manifest[]): void => {
  const deployments = deploymentsIn(all)
  const pods = deployments.map(({ spec }) => spec.template.metadata.labels)
  const names = new Set(deployments.map(({ metadata }) => metadata.name))
  const ports = new Set(deployments.flatMap(one => containerOf(one).ports.map(({ name }) => name)))
  for (const deployment of deployments) {
    expect(pods.filter(labels => selects(deployment.spec.selector.matchLabels, labels))).to.have.lengthOf(1)
    const { serviceAccountName } = podOf(deployment)
    expect(ofKind(all, 'ServiceAccount').map(({ metadata }) => metadata.name)).to.deep.equal([serviceAccountName])
  }
  type Selecting = Manifest & { readonly spec: { readonly selector: { readonly matchLabels: Labels } } }
  type ServiceManifest = Manifest & {
    readonly spec: { readonly selector: Labels; readonly ports: readonly { readonly targetPort: string }[] }
  }
  const selected = (selector: Labels): number => pods.filter(labels => selects(selector, labels)).length
  expect(ofKind<ServiceManifest>(all, 'Service').map(({ spec }) => selected(spec.selector))).to.deep.equal([1, 2])
  for (const { spec } of ofKind<ServiceManifest>(all, 'Service'))
    for (const { targetPort } of spec.ports) expect([...ports]).to.include(targetPort)
  for (const { spec } of ofKind<Selecting>(all, 'PodDisruptionBudget'))
    expect(selected(spec.selector.matchLabels)).to.equal(1)
  for (const { spec } of ofKind<Selecting>(all, 'ServiceMonitor'))
    expect(
      ofKind(all, 'Service').filter(({ metadata }) => selects(spec.selector.matchLabels, metadata.labels)),
    ).to.have.lengthOf(1)
  type Scaler = Manifest & { readonly spec: { readonly scaleTargetRef: { readonly name: string } } }
  for (const { spec } of ofKind<Scaler>(all, 'HorizontalPodAutoscaler')) {
    expect([...names]).to.include(spec.scaleTargetRef.name)
    expect(deployments.find(({ metadata }) => metadata.name === spec.scaleTargetRef.name)?.spec.replicas).to.equal(
      undefined,
    )
  }
}

/** By values that are refused: what the error says. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  'settings.API_KEY_PEPPER=a-pepper-in-a-file-of-values': /API_KEY_PEPPER/,
  'settings.LEDGER_ROLES=api': /LEDGER_ROLES/,
  'settings.rateLimits=1': /rateLimits/,
  'image.repository=': /repository/,
  'api.replica=3': /replica/,
  'secrets.env.DATABASE_URL=postgres://': /DATABASE_URL/,
  'secrets.env.DATABASE_URL=null': /DATABASE_URL/,
  'secrets.env.EVIDENCE_SIGNING_KEY.name=s,secrets.env.EVIDENCE_SIGNING_KEY.key=k': /feeds\.dataVolume/,
  'settings.EVIDENCE_SIGNING_KEY_FILE=/etc/ledger/key': /feeds\.dataVolume/,
}

const rendered = (): void => {
  const all = new Map<string, readonly Manifest[]>()
  before(async () => {
    for (const file of VALUES) all.set(file, await render(file))
  })

  for (const file of VALUES)
    describe(`with ${file}`, () => {
      const manifests = (): readonly Manifest[] => all.get(file) ?? []

      it('passes the strict linter', async () => {
        await helm('lint', '--strict', CHART, ...valuesIn(file))
      })

      it('consists of valid objects that find each other, for the oldest and a present Kubernetes', async () => {
        for (const version of KUBERNETES) {
          const objects = await render(file, '--kube-version', version)
          expect(objects.flatMap(faultsOf)).to.deep.equal([])
          checkReferences(objects)
        }
      })

      it('has pods that Pod Security "restricted" admits, without a token of the cluster', () => {
        for (const deployment of deploymentsIn(manifests())) {
          expect(violationsOf(podOf(deployment))).to.deep.equal([])
          expect(podOf(deployment).automountServiceAccountToken).to.equal(false)
        }
      })

      it('has settings with which the service starts in production', () => {
        const [api, feeds] = ['api', 'feeds'].map(component => configOf(manifests(), component))
        expect(api?.roles).to.deep.equal(['api'])
        expect(feeds?.roles).to.deep.equal(['projector', 'publisher', 'worker'])
        for (const config of [api, feeds]) {
          expect(config?.unknownSettings).to.deep.equal([])
          expect(config).to.include({ host: '0.0.0.0', port: 8080, dataDir: '/var/lib/ledger' })
          expect(config?.metrics).to.deep.equal({ host: '0.0.0.0', port: 9464, isDefault: false })
        }
        expect([api?.evidence.signingKey, feeds?.apiKeys.pepper]).to.deep.equal([undefined, undefined])
      })

      it('leaves a pod the time to end', () => {
        for (const deployment of deploymentsIn(manifests())) {
          const { terminationGracePeriodSeconds } = podOf(deployment)
          const { shutdownDelayMs } = readConfig(environmentOf(manifests(), deployment))
          const { seconds } = containerOf(deployment).lifecycle.preStop.sleep
          expect(terminationGracePeriodSeconds * SECOND_MS).to.be.above(
            seconds * SECOND_MS + shutdownDelayMs + SHUTDOWN_MAX_MS,
          )
        }
      })
    })

  it('asks real probes', async () => {
    const { api } = await sharedService()
    for (const objects of all.values()) {
      const paths = deploymentsIn(objects).map(deployment => {
        const { startupProbe, livenessProbe, readinessProbe } = containerOf(deployment)
        return [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.path)
      })
      // Nothing restarts a pod, or takes requests from it, because a dependency is away.
      expect(paths).to.deep.equal([
        ['/livez', '/livez', '/readyz?for=traffic'],
        ['/livez', '/livez', '/readyz'],
      ])
    }
    for (const path of ['/livez', '/readyz', '/readyz?for=traffic'])
      expect((await fetch(`${api}${path}`)).status, path).to.equal(200)
  })

  it('has two pods of feeds, and scales the API by default', () => {
    const objects = all.get('minimal-values.yaml') ?? []
    expect(deploymentsIn(objects).map(({ spec }) => spec.replicas)).to.deep.equal([undefined, 2])
    expect(ofKind(objects, 'HorizontalPodAutoscaler')).to.have.lengthOf(1)
  })

  it('uses another image for one Deployment alone', () => {
    const images = deploymentsIn(all.get('small-values.yaml') ?? []).map(one => containerOf(one).image)
    const repository = 'registry.example.com/payment-ledger'
    expect(images).to.deep.equal([`${repository}:1.0.0`, `${repository}:1.1.0`])
  })

  it('has the dashboard and the alerts of scripts/compose', async () => {
    const dashboard = await textOf('scripts/compose/grafana/dashboards/ledger.json')
    const alerts: unknown = parse(await textOf('scripts/compose/alerts.yaml'))
    const dataOf = (file: string, name: string): string | undefined =>
      ofKind<Data>(all.get(file) ?? [], 'ConfigMap').find(({ data }) => name in data)?.data[name]
    expect(JSON.parse(dataOf('minimal-values.yaml', 'ledger.json') ?? '')).to.deep.equal(JSON.parse(dashboard))
    expect(parse(dataOf('minimal-values.yaml', 'alerts.yaml') ?? '')).to.deep.equal(alerts)
    const ofOperator = all.get('production-values.yaml') ?? []
    type Rule = Manifest & { readonly spec: unknown }
    expect(ofKind<Rule>(ofOperator, 'PrometheusRule').map(({ spec }) => spec)).to.deep.equal([alerts])
    const renamed = dashboard.replaceAll('"uid": "prometheus"', '"uid": "mimir"')
    expect(JSON.parse(dataOf('production-values.yaml', 'ledger.json') ?? '')).to.deep.equal(JSON.parse(renamed))
  })

  for (const [setting, message] of Object.entries(REFUSED))
    it(`is refused with ${setting}`, async () => {
      const error = await render('minimal-values.yaml', '--set', setting).catch((refused: Error) => refused)
      expect(error).to.be.instanceOf(Error)
      expect((error as Error).message.replace(/^Command failed.*\n/, '')).to.match(message)
    })
}

describe('the Helm chart', () => {
  it('has at most twelve templates, and the version of the service', async () => {
    expect(readdirSync(join(CHART, 'templates')).length).to.be.at.most(12)
    const { version } = JSON.parse(await textOf('package.json')) as { readonly version: string }
    expect(parse(await textOf('scripts/deploy/payment-ledger/Chart.yaml'))).to.include({ appVersion: version })
  })

  it('takes no secret from a file of values', async () => {
    const schema = await textOf('scripts/deploy/payment-ledger/values.schema.json')
    const secret = SETTINGS.filter(name => /_(?:URL|PEPPER|KEY|PASSWORD)$/.test(name) && name !== 'PUBLIC_URL')
    const { properties } = JSON.parse(schema) as {
      readonly properties: { readonly settings: { readonly propertyNames: { readonly allOf: readonly object[] } } }
    }
    for (const name of secret) expect(JSON.stringify(properties.settings.propertyNames)).to.include(`"${name}"`)
  })

  it('finds a wrong type, a missing and an unknown member of an object', () => {
    const service = (spec: object): Manifest =>
      ({ apiVersion: 'v1', kind: 'Service', metadata: { name: 's', labels: { a: 'b' } }, spec }) as Manifest
    const ports = [{ name: 'http', port: 80 }]
    expect(faultsOf(service({ ports }))).to.deep.equal([])
    expect(faultsOf(service({ ports, selectors: { a: 'b' } }))).to.include('/spec/selectors is no member of Service')
    expect(faultsOf(service({ ports: [{ name: 'http' }] }))[0]).to.include('port')
    expect(faultsOf(service({ ports: [{ port: 'http' }] }))[0]).to.include('/spec/ports/0/port')
  })

  if (findWorkingProgram('helm', ['version']) === undefined)
    it('is not rendered, because helm is missing', () => {
      expect(findWorkingProgram('helm', ['version'])).to.equal(undefined)
    })
  else describe('rendered by Helm', rendered)
})

describe('docker-compose.yml', () => {
  it('leaves the service the time to end', async () => {
    const { 'x-service': service } = parse(await textOf('docker-compose.yml'), { merge: true }) as {
      readonly 'x-service': { readonly stop_grace_period: string }
    }
    expect(service.stop_grace_period).to.match(/^\d+s$/)
    expect(Number.parseInt(service.stop_grace_period) * SECOND_MS).to.be.above(SHUTDOWN_MAX_MS)
  })
})
