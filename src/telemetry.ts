import { setTimeout as sleep } from 'node:timers/promises'
import type * as SdkMetrics from '@opentelemetry/sdk-metrics'
import type { NodeSDK } from '@opentelemetry/sdk-node'

/** Starts OpenTelemetry, if an exporter is configured, before the modules that its instrumentation patches (`--import`). */

/** URLs and headers of callers may contain secrets. In the old and the new semantic conventions. */
const EMPTIED_ATTRIBUTES = Object.fromEntries(
  [
    'http.url',
    'http.target',
    'http.user_agent',
    'http.client_ip',
    'http.host',
    'net.host.name',
    'url.full',
    'url.path',
    'url.query',
    'user_agent.original',
    'client.address',
    'server.address',
  ].map(name => [name, '']),
)

type Views = NonNullable<ConstructorParameters<typeof NodeSDK>[0]>['views']

/** Without attributes that callers determine, and without topics. Requests have a metric of their own (requestMetrics.ts). */
export const metricViews = ({
  AggregationType,
  createAllowListAttributesProcessor,
}: typeof SdkMetrics): NonNullable<Views> => [
  { instrumentName: 'http.server.*', aggregation: { type: AggregationType.DROP } },
  {
    instrumentName: 'messaging.*',
    attributesProcessors: [
      createAllowListAttributesProcessor(['messaging.system', 'messaging.operation.name', 'error.type']),
    ],
  },
]

/** The name of a span without the id of a subscription: metrics are made from the names of spans. */
export const spanNameOf = (operation: string, topic: string): string =>
  `${operation} ${topic.replace(/^(ledger\.subscription)\.[^.]+/, '$1.{id}')}`

const isConfigured =
  Object.keys(process.env).some(name => /^OTEL_EXPORTER_OTLP_.*ENDPOINT$/.test(name)) &&
  process.env['OTEL_SDK_DISABLED'] !== 'true'

const start = async (): Promise<NodeSDK> => {
  const { register } = await import('node:module')
  register('@opentelemetry/instrumentation/hook.mjs', import.meta.url)
  const { NodeSDK: Sdk } = await import('@opentelemetry/sdk-node')
  const sdkMetrics = await import('@opentelemetry/sdk-metrics')
  const [http, express, pg, kafkajs, pino, grpc, runtime] = await Promise.all([
    import('@opentelemetry/instrumentation-http'),
    import('@opentelemetry/instrumentation-express'),
    import('@opentelemetry/instrumentation-pg'),
    import('@opentelemetry/instrumentation-kafkajs'),
    import('@opentelemetry/instrumentation-pino'),
    import('@opentelemetry/instrumentation-grpc'),
    import('@opentelemetry/instrumentation-runtime-node'),
  ])
  process.env['OTEL_SERVICE_NAME'] ??= 'payment-ledger'
  const sdk = new Sdk({
    views: metricViews(sdkMetrics),
    instrumentations: [
      new http.HttpInstrumentation({ startIncomingSpanHook: () => EMPTIED_ATTRIBUTES }),
      new express.ExpressInstrumentation(),
      new pg.PgInstrumentation(),
      new kafkajs.KafkaJsInstrumentation({
        producerHook: (span, { topic }) => void span.updateName(spanNameOf('send', topic)),
      }),
      new pino.PinoInstrumentation(),
      new grpc.GrpcInstrumentation(),
      new runtime.RuntimeNodeInstrumentation(),
    ],
  })
  sdk.start()
  return sdk
}

const started = isConfigured ? await start() : undefined

/** A collector that does not answer delays the end of the process no longer. */
const LAST_EXPORT_MAX_MS = 2_000

/** Before `process.exit`, which waits for nothing: exports the rest, if the collector answers in time. */
export const endTelemetry = async (): Promise<void> => {
  await Promise.race([started?.shutdown().catch(() => undefined), sleep(LAST_EXPORT_MAX_MS, undefined, { ref: false })])
}
