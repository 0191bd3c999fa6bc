import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { anOrder, clientOf } from './support/client.ts'
import { eventually } from './support/eventually.ts'
import { removeFolder } from './support/folders.ts'
import { kafkaForTests, kafkaKind, readTopic } from './support/kafka.ts'
import { type ExportedSpan, openOtlpCollector, type OtlpCollector } from './support/otlpCollector.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from './support/service.ts'

/** One trace from the request through the append and the log to the read models and Kafka, in the processes of a service. */

const telemetry = new URL('../src/telemetry.ts', import.meta.url).href

/** The mock broker cannot create topics. */
const hasBroker = kafkaKind === 'real' || kafkaKind === 'given'

describe(`the trace of a request${hasBroker ? '' : ' (without Kafka, because no broker can be started)'}`, () => {
  let collector: OtlpCollector
  let service: ServiceProcess
  let dataDir: string
  let brokers: readonly string[] = []

  before(async () => {
    collector = await openOtlpCollector()
    dataDir = await temporaryDirectory()
    if (hasBroker) brokers = (await kafkaForTests())?.brokers ?? []
    service = await startProcess(dataDir, {
      LEDGER_PROCESSES: '3',
      ...(hasBroker ? { KAFKA_BROKERS: brokers.join(',') } : {}),
      NODE_OPTIONS: `--import ${telemetry}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_BSP_SCHEDULE_DELAY: '200',
    })
  })
  after(async () => {
    await service?.end('SIGTERM')
    collector.close()
    await removeFolder(dataDir)
  })

  const newTrace = () => ({ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') })
  const spansOf = (traceId: string): readonly ExportedSpan[] =>
    collector.spans().filter(span => span.traceId === traceId)
  const named = (spans: readonly ExportedSpan[], name: string): ExportedSpan => {
    const match = spans.find(span => span.name === name)
    return match ?? expect.fail(`no span ${name} among ${spans.map(span => span.name).join(', ')}`)
  }
  const create = async ({ traceId, spanId }: ReturnType<typeof newTrace>) => {
    const client = clientOf(service.api, await service.token())
    const made = await client.post('/orders', anOrder(), { traceparent: `00-${traceId}-${spanId}-01` })
    expect(made.status, made.text).to.equal(201)
    return made
  }

  it('has the request, the append, the read models and the publication, all with the id that the caller sent', async () => {
    const sent = newTrace()
    const made = await create(sent)
    const hops = ['append order', 'process projector', ...(hasBroker ? ['process publisher'] : [])]
    await eventually(async () => hops.every(hop => spansOf(sent.traceId).some(({ name }) => name === hop)))
    await eventually(async () => spansOf(sent.traceId).some(({ parentSpanId }) => parentSpanId === sent.spanId))
    const spans = spansOf(sent.traceId)
    const request = spans.find(({ parentSpanId }) => parentSpanId === sent.spanId)
    expect(request?.name, 'the span of the request').to.match(/^POST/)
    // Every hop is a child of a span of this trace: of the request, or of a span within it.
    const ids = new Set(spans.map(({ spanId }) => spanId))
    for (const hop of hops) expect(ids.has(named(spans, hop).parentSpanId ?? ''), hop).to.equal(true)
    for (const hop of hops.slice(1)) {
      const part = named(spans, hop)
      const link = part.links?.[0] ?? expect.fail(`${hop} has no link to its batch`)
      await eventually(async () => collector.spans().some(({ spanId }) => spanId === link.spanId))
      const batch = collector.spans().find(({ spanId }) => spanId === link.spanId)
      expect(batch?.traceId).to.equal(link.traceId).and.to.not.equal(sent.traceId)
      expect(batch?.links?.map(({ traceId }) => traceId)).to.include(sent.traceId)
    }
    if (!hasBroker) return
    const published = async () =>
      (await readTopic(brokers, 'ledger.order.v1')).find(({ headers }) => headers['ce_subject'] === made.body.id)
    await eventually(async () => (await published()) !== undefined)
    expect((await published())?.headers['traceparent']).to.match(new RegExp(`^00-${sent.traceId}-[0-9a-f]{16}-01$`))
  })

  it('is linked from one batch to every request that it serves', async () => {
    const traces = Array.from({ length: 12 }, newTrace)
    await Promise.all(traces.map(create))
    const isProjected = ({ traceId }: ReturnType<typeof newTrace>): boolean =>
      spansOf(traceId).some(({ name }) => name === 'process projector')
    await eventually(async () => traces.every(isProjected))
    const linked = () =>
      collector
        .spans()
        .filter(({ name }) => name === 'process batch projector')
        .flatMap(({ links = [] }) => links.map(({ traceId }) => traceId))
    await eventually(async () => traces.every(({ traceId }) => linked().includes(traceId)))
  })

  it('is named in the log line of the request, beside its correlation id', async () => {
    const sent = newTrace()
    const made = await create(sent)
    const correlationId = made.headers.get('x-correlation-id')
    const line = async () =>
      (await readFile(join(dataDir, 'ledger.log'), 'utf8'))
        .split('\n')
        .find(text => text.includes(`"${correlationId}"`))
    await eventually(async () => (await line()) !== undefined)
    expect(JSON.parse((await line()) ?? '')).to.include({
      correlationId,
      trace_id: sent.traceId,
      route: 'create_order',
    })
  })
})
