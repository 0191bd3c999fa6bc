/**
 * Loaded before everything else (`node --import`), since instrumentation has to be there before what it instruments. It
 * costs nothing unless an OpenTelemetry collector is configured: OTEL_EXPORTER_OTLP_ENDPOINT and its siblings.
 */

/**
 * What callers write may hold anything, secrets by mistake too: of a request a trace has the route's template, the method
 * and the status, and not a word of the caller's own. Both namings, since the convention is about to change.
 */
const UNTOLD = Object.fromEntries(
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
      new http.HttpInstrumentation({ startIncomingSpanHook: () => UNTOLD }),
      new express.ExpressInstrumentation(),
      new pg.PgInstrumentation(),
      new kafkajs.KafkaJsInstrumentation(),
      new pino.PinoInstrumentation(),
      new grpc.GrpcInstrumentation(),
      new runtime.RuntimeNodeInstrumentation(),
    ],
  })
  sdk.start()
  // Whatever still waits to be exported leaves with the process, if the collector takes it in time.
  process.once('beforeExit', () => void sdk.shutdown())
}
