import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { failingFeedScrapes } from '../compose/failingFeed.ts'
import { anOrder, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { findWorkingProgram } from '../support/programs.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

/**
 * The alerts, on series made from the metrics of a real service, with their names and labels. Where a cause would take too
 * long to make, the values of the series that show it are replaced.
 */

const ALERTS = fileURLToPath(new URL('../../scripts/compose/alerts.yaml', import.meta.url))
const run = promisify(execFile)

type Series = { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly values: string }
type Cause = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** In promtool's notation, once a minute. */
  readonly values: string
}

const MINUTES = 40
const constant = (value: string | number): string => `${value}x${MINUTES}`
const growing = (perMinute: number): string => `0+${perMinute}x${MINUTES}`

const seriesIn = (text: string): Series[] =>
  [...text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value = '']) => ({
    name,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', of = '']) => [key, of]),
    ),
    values: constant(value),
  }))

/** As Prometheus stores what it scrapes. */
const scrapedFrom = (instance: string, series: readonly Series[]): Series[] =>
  [{ name: 'up', labels: {}, values: constant(1) }, ...series].map(({ name, labels, values }) => ({
    name,
    labels: { job: 'ledger', instance, ...labels },
    values,
  }))

const isOf = ({ name, labels }: Cause, series: Series): boolean =>
  series.name === name && Object.entries(labels).every(([label, value]) => series.labels[label] === value)

/** The series with the values of the causes, each of which has to be there. */
const withCauses = (all: readonly Series[], causes: readonly Cause[]): readonly Series[] => {
  for (const cause of causes)
    expect(
      all.some(series => isOf(cause, series)),
      `a series ${JSON.stringify(cause)}`,
    ).to.equal(true)
  return all.map(series => ({
    ...series,
    values: causes.findLast(cause => isOf(cause, series))?.values ?? series.values,
  }))
}

const notation = ({ name, labels }: Series): string =>
  `${name}{${Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')}}`

const feedState = (state: string, value: number): Cause => ({
  name: 'ledger_feed_state',
  labels: { feed: 'projector', state },
  values: constant(value),
})
const gauge = (name: string, value: number, labels: Readonly<Record<string, string>> = {}): Cause => ({
  name,
  labels,
  values: constant(value),
})
const durations = (suffix: string, perMinute: number, labels: Readonly<Record<string, string>>): Cause => ({
  name: `ledger_http_request_duration_seconds_${suffix}`,
  labels: { route: 'POST /orders', ...labels },
  values: growing(perMinute),
})

/** By the alerts that fire for it. */
const CAUSES: Readonly<Record<string, readonly Cause[]>> = {
  LedgerUnreachable: [gauge('up', 0)],
  LedgerProcessHangs: [gauge('ledger_process_up', 0, { process: 'api-1' })],
  LedgerDependencyDown: [gauge('ledger_dependency_up', 0, { process: 'feeds', dependency: 'postgres' })],
  'LedgerFeedRunsNowhere, LedgerFeedStopped': [feedState('live', 0), feedState('stopped', 1)],
  LedgerFeedRunsNowhere: [feedState('live', 0), feedState('waiting', 1)],
  LedgerFeedBehind: [gauge('ledger_feed_lag_seconds', 61, { feed: 'orders_v1' })],
  LedgerHeadsLate: [
    { name: 'ledger_evidence_head_age_seconds', labels: {}, values: `10+60x${MINUTES}` },
    gauge('ledger_evidence_unsealed_events', 3),
  ],
  LedgerServerErrors: [durations('count', 98, { status_class: '2xx' }), durations('count', 2, { status_class: '5xx' })],
  LedgerSlowRequests: [
    durations('bucket', 10, { status_class: '2xx', le: '+Inf' }),
    durations('bucket', 10, { status_class: '2xx', le: '5' }),
    durations('bucket', 10, { status_class: '2xx', le: '10' }),
  ],
  LedgerDeadLetters: [gauge('ledger_dead_letters', 2, { delivery: 'publisher' })],
  LedgerTenantNearQuota: [gauge('ledger_tenant_bytes_used_ratio', 0.85)],
  LedgerEventLoopBusy: [gauge('nodejs_eventloop_utilization_ratio', 0.99, { process: 'api-1' })],
  LedgerMemoryHigh: [gauge('process_resident_memory_bytes', 2e9, { process: 'api-1' })],
}

/** Values with which no alert fires. Those of the processor and of the memory depend on the machine of the test. */
const UNALARMING: readonly Cause[] = [
  // Nothing happens: the newest head gets older, and covers every event.
  { name: 'ledger_evidence_head_age_seconds', labels: {}, values: `10+60x${MINUTES}` },
  gauge('ledger_evidence_unsealed_events', 0),
  ...['orders_v1', 'manifests'].map(feed => gauge('ledger_feed_lag_seconds', 59, { feed })),
  gauge('ledger_feed_lag_seconds', 1_799, { feed: 'exports' }),
  gauge('ledger_tenant_bytes_used_ratio', 0.79),
  gauge('process_resident_memory_bytes', 3e8),
  // One busy scrape after the start, and then another one after each quiet minute.
  {
    name: 'nodejs_eventloop_utilization_ratio',
    labels: {},
    values: Array(MINUTES / 2)
      .fill('0.99 0.1')
      .join(' '),
  },
]

const inputOf = (all: readonly Series[]) => all.map(one => ({ series: notation(one), values: one.values }))

const MINUTELY = { interval: '1m', eval_time: `${MINUTES}m` }

const withPromtool = (): void => {
  let service: ServiceProcess
  let healthy: readonly Series[]
  let ailing: readonly Series[]

  const scrape = async (): Promise<Series[]> => seriesIn(await (await fetch(service.addresses.metrics ?? '')).text())
  const valueIn = (all: readonly Series[], name: string, labels: Readonly<Record<string, string>>) =>
    all.find(series => isOf({ name, labels, values: '' }, series))?.values

  before(async () => {
    service = await startProcess(await temporaryDirectory(), { LEDGER_PROCESSES: '2', MANIFEST_EVERY: '1h' })
    const client = clientOf(service.api, await service.token())
    expect((await client.post('/orders', anOrder())).status).to.equal(201)
    const store = service.addresses.pids['eventstore'] ?? 0
    process.kill(store, 'SIGSTOP')
    try {
      expect((await client.post('/orders', anOrder())).status).to.be.within(503, 504)
      ailing = await eventually(async () => {
        const all = await scrape()
        const isDown = (process: string): boolean =>
          valueIn(all, 'ledger_dependency_up', { process, dependency: 'event_store' }) === constant(0)
        // A metric of the feeds that cannot be read takes none of the others away.
        return isDown('api-1') && isDown('feeds') && all
      })
    } finally {
      process.kill(store, 'SIGCONT')
    }
    healthy = await eventually(async () => {
      const all = await scrape()
      const isSealed = valueIn(all, 'ledger_evidence_unsealed_events', {}) === constant(0)
      const isLive = all.every(({ name, labels, values }) =>
        name === 'ledger_feed_state' && labels['state'] === 'live' ? values === constant(1) : true,
      )
      return isSealed && isLive && valueIn(all, 'ledger_feed_lag_seconds', {}) !== undefined && all
    })
  })
  after(async () => {
    await service?.end('SIGTERM')
    if (service) await removeFolder(service.dataDir)
  })

  /** Throws promtool's report unless exactly these alerts fire at the end of the series. */
  const check = async (series: readonly Series[], alerts: readonly string[], times = MINUTELY): Promise<void> => {
    const folder = await temporaryDirectory()
    const fired = alerts.map(name => ({ labels: `{alertname="${name}"}`, value: 1 }))
    const { interval, eval_time } = times
    const expr = 'group by (alertname) (ALERTS{alertstate="firing"})'
    const test = {
      interval,
      input_series: inputOf(series),
      promql_expr_test: [{ expr, eval_time, exp_samples: fired }],
    }
    const file = join(folder, 'alerts.test.json')
    await writeFile(file, JSON.stringify({ rule_files: [ALERTS], evaluation_interval: interval, tests: [test] }))
    await run('promtool', ['test', 'rules', file]).catch((error: { readonly stdout: string }) =>
      expect.fail(error.stdout),
    )
    await removeFolder(folder)
  }

  const ofService = (instance = 'one'): readonly Series[] => withCauses(scrapedFrom(instance, healthy), UNALARMING)

  it('do not fire for a healthy service, nor at its first scrape', async () => {
    await check(ofService(), [])
    await check(ofService(), [], { interval: '1m', eval_time: '0m' })
  })

  for (const [alerts, causes] of Object.entries(CAUSES))
    it(`fire ${alerts} on its cause alone`, async () => {
      await check(withCauses(ofService(), causes), alerts.split(', '))
    })

  for (const [feed, seconds] of Object.entries({ settlement: 61, manifests: 61, sealing: 61, exports: 1_801 }))
    it(`fire LedgerFeedBehind for ${feed}`, async () => {
      const cause = gauge('ledger_feed_lag_seconds', seconds, { feed })
      await check(withCauses(ofService(), [cause]), ['LedgerFeedBehind'])
    })

  it('fire LedgerUnreachable for an instance of the profile pair that is no target any more, and for no other', async () => {
    const gone = (labels: object): Series => ({
      name: 'up',
      labels: { job: 'ledger', ...labels },
      values: `1x5 stale _x${MINUTES - 6}`,
    })
    await check([...ofService(), gone({ instance: 'a pod that was scaled away' })], [])
    await check([...ofService(), gone({ instance: 'api-2:9464', profile: 'pair' })], ['LedgerUnreachable'])
  })

  it('fire LedgerDependencyDown while the event store of a real service hangs', async () => {
    await check(
      scrapedFrom('one', ailing).filter(({ name }) => name === 'up' || name === 'ledger_dependency_up'),
      ['LedgerDependencyDown'],
    )
  })

  it('fire LedgerFeedFails for a real feed that fails again and again, whose state is live at most scrapes', async () => {
    const [first = '', ...others] = await failingFeedScrapes()
    const values = others.map(seriesIn)
    const series = seriesIn(first).map(one => ({
      ...one,
      values: values.map(all => all.find(other => notation(other) === notation(one))?.values.split('x')[0]).join(' '),
    }))
    await check(scrapedFrom('one', series), ['LedgerFeedFails'], { interval: '10s', eval_time: '9m50s' })
  })

  it('count what two instances report of one table once', async () => {
    const two = ['one', 'two'].flatMap(instance => withCauses(ofService(instance), CAUSES['LedgerDeadLetters'] ?? []))
    const [expression = ''] = /max by \(delivery\) \(ledger_dead_letters\)/.exec(await readFile(ALERTS, 'utf8')) ?? []
    const file = join(await temporaryDirectory(), 'dead-letters.json')
    const exp_samples = [{ labels: '{delivery="publisher"}', value: 2 }]
    const promql_expr_test = [{ expr: expression, eval_time: '5m', exp_samples }]
    const test = { interval: '1m', input_series: inputOf(two), promql_expr_test }
    await writeFile(file, JSON.stringify({ rule_files: [], evaluation_interval: '1m', tests: [test] }))
    await run('promtool', ['test', 'rules', file])
  })
}

describe('the alerts', () => {
  it('each have a cause in this test', async () => {
    const names = [...(await readFile(ALERTS, 'utf8')).matchAll(/alert: (\w+)/g)].map(([, name = '']) => name)
    const tested = new Set([...Object.keys(CAUSES).flatMap(name => name.split(', ')), 'LedgerFeedFails'])
    expect(names.filter(name => !tested.has(name))).to.deep.equal([])
    expect(names.length).to.be.at.least(13)
  })

  if (findWorkingProgram('promtool', ['--version']) === undefined)
    it('are not fired, because promtool is missing', () => {
      expect(findWorkingProgram('promtool', ['--version'])).to.equal(undefined)
    })
  else describe('evaluated by promtool', withPromtool)
})
