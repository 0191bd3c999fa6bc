import { expect } from 'chai'
import { removeFolder } from './support/folders.ts'
import { openOtlpCollector } from './support/otlpCollector.ts'
import { startProcess, temporaryDirectory } from './support/service.ts'

const telemetry = new URL('../src/telemetry.ts', import.meta.url).href

describe('the telemetry of a service', () => {
  it('is exported when the service ends at a signal, with the last spans and metrics', async () => {
    const collector = await openOtlpCollector()
    const dataDir = await temporaryDirectory()
    try {
      const service = await startProcess(dataDir, {
        NODE_OPTIONS: `--import ${telemetry}`,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
        OTEL_METRICS_EXPORTER: 'otlp',
        OTEL_METRIC_EXPORT_INTERVAL: '600000',
        OTEL_LOGS_EXPORTER: 'none',
        // No batch is full or due before the end.
        OTEL_BSP_SCHEDULE_DELAY: '600000',
        OTEL_BSP_MAX_QUEUE_SIZE: '100000',
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '100000',
      })
      await fetch(`${service.api}/schemas/ledger.manifest.v1.json`)
      const before = collector.text()
      expect(await service.end('SIGTERM')).to.equal(0)
      expect(before, 'exported before the end').to.equal('')
      expect(collector.text())
        .to.include('/schemas/:name')
        .and.to.include('ledger.http.request.duration')
        .and.to.include('GET /schemas/{name}')
        .and.not.to.include('http.server.request.duration')
    } finally {
      collector.close()
      await removeFolder(dataDir)
    }
  })
})
