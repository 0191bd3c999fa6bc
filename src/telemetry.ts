import { setTimeout as sleep } from 'node:timers/promises'
import type * as SdkMetrics from '@opentelemetry/sdk-metrics'
import type { NodeSDK } from '@opentelemetry/sdk-node'

/**
 * Starts OpenTelemetry, when an exporter is configured (OTEL_EXPORTER_OTLP_ENDPOINT and similar). Loaded before all
 * other modules (`node --import`), because instrumentation must be registered before the modules that it patches.
 */

/**
 * Attributes that are emptied, because URLs and headers of callers may contain secrets: a trace has the route's
 * template, the method and the status of a request. Both the old and the new semantic conventions are covered.
 */
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

/**
 * The metrics of libraries without attributes that callers or their resources determine. Requests have a metric of
 * their own (http/server/requestMetrics.ts). Topics are left out, because every subscription has its own.
 */
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

/**
 * Exports the spans and metrics that were not exported yet, if the collector answers in time. To be called before
 * `process.exit`, which waits for nothing.
 */
export const endTelemetry = async (): Promise<void> => {
  await Promise.race([started?.shutdown().catch(() => undefined), sleep(LAST_EXPORT_MAX_MS, undefined, { ref: false })])
}
