import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { everyRow } from '../support/databaseDump.ts'
import { aPayment, approvedInvoice, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { send, type Wire } from '../support/rawHttp.ts'
import { removeFolder } from '../support/folders.ts'
import { openOtlpCollector, type OtlpCollector } from '../support/otlpCollector.ts'

/**
 * Secrets where callers send secrets, correctly or by mistake: none of them may be found in a log, a trace, a metric,
 * an event, an audit record or any table. A canary is a text that occurs nowhere else.
 */

const telemetry = new URL('../../src/telemetry.ts', import.meta.url).href

const canary = (): string => `canary${randomBytes(12).toString('hex')}`

const HEADERS = [
  'Authorization',
  'X-API-Key',
  'Cookie',
  'Proxy-Authorization',
  'X-Auth-Token',
  'X-Access-Token',
  'X-Amz-Security-Token',
  'X-Forwarded-Access-Token',
  'X-Correlation-ID',
  'API-Version',
  'If-None-Match',
  'If-Match',
  'If-Min-Position',
  'Prefer',
  'Accept',
  'Accept-Language',
  'User-Agent',
  'Referer',
  'Origin',
  'Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Original-URL',
  'X-HTTP-Method-Override',
  'Last-Event-ID',
  'traceparent',
  'baggage',
  'From',
  'Via',
  'Content-Language',
] as const
const PARAMETERS = [
  'access_token',
  'token',
  'api_key',
  'client_secret',
  'password',
  'code',
  'cursor',
  'id_token',
] as const
const MEMBERS = ['password', 'client_secret', 'authorization', 'api_key', 'card_number'] as const

/** The value of the header with the text in it; credentials and correlation ids are malformed, so that they are refused. */
const valueWith = (name: string, text: string): string =>
  name === 'Authorization' ? `Bearer ${text}` : name === 'X-Correlation-ID' ? `${text} with a space` : text

describe('secrets', () => {
  let dataDir: string
  let service: ServiceProcess
  let collector: OtlpCollector
  let token: string
  const planted = new Map<string, string>()
  const plant = (where: string): string => {
    const text = canary()
    planted.set(where, text)
    return text
  }

  const ask = (wire: Partial<Wire>) =>
    send(service.api, { method: 'GET', path: '/orders', headers: [['Authorization', `Bearer ${token}`]], ...wire })

  before(async () => {
    collector = await openOtlpCollector()
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir, {
      LOG_LEVEL: 'debug',
      NODE_OPTIONS: `--import ${telemetry}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '500',
      OTEL_METRIC_EXPORT_TIMEOUT: '400',
      OTEL_BSP_SCHEDULE_DELAY: '200',
    })
    token = await service.token()
  })
  after(async () => {
    await service.end('SIGTERM')
    collector.close()
    await removeFolder(dataDir)
  })

  const plantAll = async (): Promise<void> => {
    for (const name of HEADERS) {
      const own = ['Authorization', 'X-API-Key'].includes(name) ? [] : [['Authorization', `Bearer ${token}`] as const]
      await ask({ headers: [...own, [name, valueWith(name, plant(`header ${name}`))]] })
    }
    for (const name of PARAMETERS) await ask({ path: `/orders?${name}=${plant(`parameter ${name}`)}` })
    for (const name of MEMBERS) {
      const body = JSON.stringify({ [name]: plant(`member ${name}`) })
      const headers = [['Authorization', `Bearer ${token}`] as const, ['Content-Type', 'application/json'] as const]
      await ask({ method: 'POST', path: '/orders', headers, body })
    }
    await ask({ path: `/orders/${plant('path')}` })
    const basic = Buffer.from(`dev-acme:${plant('client secret')}`).toString('base64')
    await fetch(`${service.api}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: `grant_type=client_credentials&client_secret=${plant('client secret in the body')}`,
    })
  }

  it('are in no log, trace, metric, event, audit record or table', async () => {
    const client = clientOf(service.api, token)
    const { invoiceId } = await approvedInvoice(client)
    const paid = await client.post('/payments', aPayment(invoiceId), { 'idempotency-key': plant('idempotency key') })
    expect(paid.status).to.equal(201)
    await plantAll()
    expect(planted.size).to.be.at.least(40)
    // Other texts of the requests are found, which shows that the search works.
    await eventually(async () => collector.text().includes('POST') && collector.text().includes('nodejs.eventloop'))
    const database = openDatabase({ connectionString: service.addresses.postgres })
    const rows = await everyRow(database)
    await database.close()
    expect(rows).to.include(invoiceId)
    // The service exports its last spans and metrics, and writes its last lines, before it ends.
    await service.end('SIGTERM')
    const logs = (
      await Promise.all(
        (
          await readdir(dataDir)
        )
          .filter(name => name.endsWith('.log'))
          .map(name => readFile(join(dataDir, name), 'utf8')),
      )
    ).join('\n')
    expect(logs).to.include('create_payment')
    const places = { telemetry: collector.text(), rows, logs, output: service.output() }
    const actual = [...planted, ['the whole token', token] as const].flatMap(([where, text]) =>
      Object.entries(places).flatMap(([place, all]) => (all.includes(text) ? [`${where} in ${place}`] : [])),
    )
    expect(actual).to.deep.equal([])
  })
})
