/**
 * Starts OpenTelemetry, when an exporter is configured (OTEL_EXPORTER_OTLP_ENDPOINT and similar). Loaded before all other
 * modules (`node --import`), because instrumentation must be registered before the modules that it patches.
 */

/**
 * Attributes that are emptied, because URLs and headers of callers may contain secrets: a trace has the route's template,
 * the method and the status of a request. Both the old and the new semantic conventions are covered.
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

const isConfigured = Object.keys(process.env).some(name => /^OTEL_EXPORTER_OTLP_.*ENDPOINT$/.test(name))

if (isConfigured && process.env['OTEL_SDK_DISABLED'] !== 'true') {
  const { register } = await import('node:module')
  register('@opentelemetry/instrumentation/hook.mjs', import.meta.url)
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
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
  const sdk = new NodeSDK({
    instrumentations: [
      new http.HttpInstrumentation({ startIncomingSpanHook: () => EMPTIED_ATTRIBUTES }),
      new express.ExpressInstrumentation(),
      new pg.PgInstrumentation(),
      new kafkajs.KafkaJsInstrumentation(),
      new pino.PinoInstrumentation(),
      new grpc.GrpcInstrumentation(),
      new runtime.RuntimeNodeInstrumentation(),
    ],
  })
  sdk.start()
  // Spans that were not exported yet are exported at the end, if the collector answers in time.
  process.once('beforeExit', () => void sdk.shutdown())
}
