import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { metrics } from '@opentelemetry/api'
import * as sdkMetrics from '@opentelemetry/sdk-metrics'
import { expect } from 'chai'
import { metricViews, spanNameOf } from '../../../src/telemetry.ts'
import { inParallel } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { startVariant, type Variant } from '../../support/serviceVariants.ts'

class ManualReader extends sdkMetrics.MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

/** The series that one request of each kind below makes. */
const KINDS = 9

/** The attributes of every series of every metric, as the service exports them. */
const seriesOf = async (reader: ManualReader): Promise<Record<string, unknown>[]> =>
  (await reader.collect()).resourceMetrics.scopeMetrics
    .flatMap(scope => scope.metrics)
    .flatMap(metric => metric.dataPoints.map(({ attributes }) => ({ metric: metric.descriptor.name, ...attributes })))

const opened = (): { reader: ManualReader; provider: sdkMetrics.MeterProvider } => {
  const reader = new ManualReader()
  return { reader, provider: new sdkMetrics.MeterProvider({ readers: [reader], views: metricViews(sdkMetrics) }) }
}

describe('the metric of requests', () => {
  let variant: Variant
  let reader: ManualReader
  let provider: sdkMetrics.MeterProvider
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  before(async () => {
    ;({ reader, provider } = opened())
    metrics.setGlobalMeterProvider(provider)
    const empty: AsyncIterable<never> = {
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
    }
    variant = await startVariant(await sharedService(), { store: real => ({ ...real, readStream: () => empty }) })
  })
  after(async () => {
    agent.destroy()
    await variant.close()
    metrics.disable()
    await provider.shutdown()
  })

  const send = (method: string, path: string, headers: Record<string, string> = {}): Promise<number> =>
    new Promise((resolve, reject) => {
      request(`${variant.api}${path}`, { method, headers, agent }, res => {
        res.resume().once('end', () => resolve(res.statusCode ?? 0))
      })
        .once('error', reject)
        .end()
    })

  const id = (prefix: string): string =>
    `${prefix}_${randomUUID()
      .replaceAll('-', '')
      .toUpperCase()
      .slice(0, 26)
      .replaceAll(/[ILOU]/g, '0')}`
  /** Requests with a different id, key, name or text each, in every place where a caller can put one. */
  const requests: readonly (() => Promise<number>)[] = [
    () => send('GET', `/orders/${id('ord')}`),
    () => send('GET', `/invoices/${id('inv')}`, { 'api-version': '2026-11-22' }),
    () => send('GET', `/orders/${randomUUID()}`, { 'x-correlation-id': randomUUID() }),
    () => send('GET', `/${randomUUID()}/${randomUUID()}`),
    () => send('GET', `/orders?${randomUUID()}=1`),
    () => send('GET', `/orders?cursor=${randomUUID()}`),
    () => send('POST', `/payments/${id('pay')}:refund`, { 'idempotency-key': randomUUID() }),
    () => send('DELETE', `/invoices/${id('inv')}`),
    () => send('GET', '/orders?limit=1', { 'api-version': randomUUID() }),
    () => send('POST', `/orders/${id('ord')}:cancel`, { 'if-match': `"${randomUUID()}"` }),
  ]

  it('has no new series for 10,000 random ids, keys, names and paths', async () => {
    for (const one of requests) await one()
    // A response is recorded when its connection has closed it, which the client may notice first.
    const first = await eventually(async () => {
      const series = await seriesOf(reader)
      return series.length === KINDS && series
    })
    expect(first.map(({ route, error_code }) => `${String(route)} ${String(error_code)}`)).to.include.members([
      'GET /orders/{id} resource_not_found',
      'GET /invoices/{id} resource_not_found',
      'none route_not_found',
      'GET /orders unknown_parameter',
      'POST /payments/{id}:refund resource_not_found',
      'GET /orders unsupported_api_version',
    ])
    const names = new Set(first.flatMap(series => Object.keys(series)))
    expect([...names]).to.have.members(['metric', 'route', 'status_class', 'error_code', 'api_version'])
    await inParallel(
      16,
      Array.from({ length: 10_000 }),
      (_, index) => requests[index % requests.length]?.() ?? send('GET', '/nowhere'),
    )
    expect(await seriesOf(reader)).to.have.deep.members(first)
  })

  it('counts a success without an error code', async () => {
    expect(await send('GET', '/livez')).to.equal(200)
    expect(await seriesOf(reader)).to.deep.include({
      metric: 'ledger.http.request.duration',
      route: 'GET /livez',
      status_class: '2xx',
      api_version: '2026-11-01',
    })
  })
})

describe('the metrics of libraries', () => {
  it('have no attributes of callers, and no topics of subscriptions', async () => {
    const { reader, provider } = opened()
    const meter = provider.getMeter('a library')
    for (let count = 0; count < 1_000; count++) {
      meter.createHistogram('http.server.request.duration').record(1, { 'http.route': randomUUID() })
      meter.createCounter('messaging.client.sent.messages').add(1, {
        'messaging.system': 'kafka',
        'messaging.operation.name': 'send',
        'messaging.destination.name': `ledger.subscription.${randomUUID()}`,
        'messaging.destination.partition.id': String(count),
      })
    }
    expect(await seriesOf(reader)).to.deep.equal([
      { metric: 'messaging.client.sent.messages', 'messaging.system': 'kafka', 'messaging.operation.name': 'send' },
    ])
    await provider.shutdown()
  })

  it('that are made from the names of spans have no ids of subscriptions', () => {
    expect(spanNameOf('send', 'ledger.subscription.sub_01')).to.equal('send ledger.subscription.{id}')
    expect(spanNameOf('send', 'ledger.subscription.sub_01.dlq')).to.equal('send ledger.subscription.{id}.dlq')
    expect(spanNameOf('send', 'ledger.payment.v1')).to.equal('send ledger.payment.v1')
  })
})
