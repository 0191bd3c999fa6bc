import { createHash, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { Client as PostgresClient } from 'pg'
import { invoices } from '../../projections/invoices/projection.ts'
import { invoiceView } from '../../projections/invoices/queries.ts'
import { orders } from '../../projections/orders/projection.ts'
import { orderView } from '../../projections/orders/queries.ts'
import { payments } from '../../projections/payments/projection.ts'
import { paymentView } from '../../projections/payments/queries.ts'
import { fold, type Projection, type ResourceRow } from '../../projections/projection.ts'
import { randomId } from '../../src/lib/identifiers.ts'
import { newEventOf } from '../../src/lib/storedEvents.ts'
import { tokensOf, withTexts } from '../../src/personalTexts/personalTexts.ts'
import { decode } from '../../src/feeds/decode.ts'
import type { EventStore } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { ExportFormat, ExportResource } from '../../streams/operation/index.ts'
import { payment, type PaymentEvent } from '../../streams/payment/index.ts'
import { type Answer, type Client, inParallel, retryingFetch } from './client.ts'
import { eventually } from './eventually.ts'
import { checkResponse } from './openapiCheck.ts'
import { rowsOfFile, type Read } from './exportFileReaders.ts'
import type { TestService } from './service.ts'

/** Shared steps of the export tests: request, wait, download, and compare the file with its manifest. */

export type Download = { readonly status: number; readonly headers: Headers; readonly bytes: Buffer }

/** Downloads the file as bytes; the response is checked against the contract. */
export const download = async (
  service: Pick<TestService, 'api' | 'token'>,
  id: string,
  tenant: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Download> => {
  const path = `/exports/${id}/content`
  const authorization = `Bearer ${await service.token({ tenant })}`
  const response = await retryingFetch(`${service.api}${path}`, { headers: { authorization, ...headers } })
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString('latin1')
  const isProblem = response.headers.get('content-type') === 'application/problem+json'
  const body: unknown = isProblem ? JSON.parse(bytes.toString()) : undefined
  const { status } = response
  await checkResponse({ method: 'GET', path, status, headers: response.headers, body, text })
  return { status, headers: response.headers, bytes }
}

export type Wanted = {
  readonly resource: ExportResource
  readonly format: ExportFormat
  readonly filters?: Readonly<Record<string, string>>
}

export const askFor = async (client: Client, target: Wanted): Promise<string> => {
  const reply = await client.post('/exports', target)
  expect(reply.status, reply.text).to.equal(202)
  return reply.body.id
}

const ENDS = ['succeeded', 'failed', 'cancelled', 'expired']

/** The operation after it has ended. */
export const ended = (client: Client, id: string): Promise<Answer> =>
  eventually(async () => {
    const answer = await client.get(`/operations/${id}`)
    return ENDS.includes(answer.body?.state) && answer
  })

/** The manifest and the rows of a finished export, after the file was checked against the manifest. */
export const fetched = async (
  service: TestService,
  client: Client,
  { id, tenant }: { id: string; tenant: string },
): Promise<{ manifest: Answer['body']; rows: Read[]; bytes: Buffer }> => {
  const operation = await ended(client, id)
  expect(operation.body, operation.text).to.include({ state: 'succeeded', error: null })
  expect(operation.body.result).to.deep.equal({ href: `/exports/${id}/content` })
  const { body: manifest } = await client.get(`/exports/${id}/manifest`)
  const { bytes, headers, status } = await download(service, id, tenant)
  expect(status).to.equal(200)
  const digest = createHash('sha256').update(bytes)
  expect(manifest).to.include({ byte_count: bytes.length, sha256: digest.copy().digest('hex'), operation_id: id })
  expect(headers.get('repr-digest')).to.equal(`sha-256=:${digest.digest('base64')}:`)
  expect(headers.get('content-length')).to.equal(String(bytes.length))
  const rows = await rowsOfFile(manifest.format, bytes)
  expect(rows).to.have.length(manifest.row_count)
  expect(operation.body.progress).to.include({ done: manifest.row_count, total: manifest.row_count, unit: 'rows' })
  return { manifest, rows, bytes }
}

/** The resources whose rows are views of streams. */
export const STREAM_RESOURCES = ['orders', 'invoices', 'payments'] as const
const PREFIXES = { orders: 'order', invoices: 'invoice', payments: 'payment' } as const
const folds = {
  orders: (events: readonly Recorded<never>[]) => view(orders, orderView, events),
  invoices: (events: readonly Recorded<never>[]) => view(invoices, invoiceView, events),
  payments: (events: readonly Recorded<never>[]) => view(payments, paymentView, events),
}

const view = <E extends AnyEvent, R extends ResourceRow>(
  projection: Projection<E, R>,
  shown: (row: R) => object,
  events: readonly Recorded<E>[],
): { row: ResourceRow; shown: Read } => {
  const row = events.reduce<R | undefined>((before, recorded) => fold(projection, before, recorded), undefined)
  if (row === undefined) throw new Error('A stream without events.')
  return { row, shown: shown(row) as Read }
}

/** The views of the tenant's resources by the streams, as of the position, newest first. */
export const foldedUpTo = async (
  store: EventStore,
  resource: (typeof STREAM_RESOURCES)[number],
  { tenant, position }: { tenant: string; position: bigint },
): Promise<Read[]> => {
  const streams = new Map<string, Recorded<never>[]>()
  const signal = new AbortController().signal
  for await (const item of store.subscribe({ after: 'start', categories: [PREFIXES[resource]], signal })) {
    if (item.kind === 'caught_up') break
    if (item.kind !== 'event') continue
    if (item.event.position > position) break
    const { recorded } = decode(item.event)
    if (recorded.metadata.tenant !== tenant) continue
    streams.set(recorded.id, [...(streams.get(recorded.id) ?? []), recorded as Recorded<never>])
  }
  const newestFirst = (a: ResourceRow, b: ResourceRow): number =>
    `${a.created_at}${a.id}` < `${b.created_at}${b.id}` ? 1 : -1
  return [...streams.values()]
    .map(events => folds[resource](events))
    .filter(({ row }) => row.state !== 'deleted')
    .toSorted((a, b) => newestFirst(a.row, b.row))
    .map(({ shown }) => shown)
}

/** The views with the texts in place of their tokens. */
export const withTextsOf = async (postgres: PostgresClient, views: readonly Read[]): Promise<Read[]> => {
  const select = 'select token, text from personal_texts where token = any($1)'
  const { rows } = await postgres.query<{ token: string; text: string | null }>(select, [tokensOf(views)])
  const texts = new Map(rows.map(({ token, text }) => [token, text]))
  return views.map(view => withTexts(view, texts))
}

const CONCURRENCY = 64
/** A chunk of an export has 256 KiB: with this note, 1,500 payments fill seven. */
const NOTE = 'n'.repeat(500)

/** Writes payments directly into the log, in numbers for which requests would take too long. */
export const manyPayments = async (store: EventStore, tenant: string, count: number): Promise<void> => {
  const world = realWorld()
  const from = Date.now() - count
  await inParallel(CONCURRENCY, Array.from({ length: count }).fill(0), async (_, n) => {
    const id = randomId('pay', world)
    const terms = {
      invoice_id: randomId('inv', world),
      order_id: randomId('ord', world),
      amount: BigInt(n % 7 === 0 ? 999_999_999_999 : n + 1),
      currency: n % 3 === 0 ? 'JPY' : 'USD',
      reference: n % 5 === 0 ? null : `=${tenant} ☃ ${n}`,
      settlement: 'immediate' as const,
    }
    const reference_stream = randomId('ref', world)
    const claim = { key_hash: '', caller: { subject: 's', client: 'c' }, fingerprint: '', request: {}, expires_at: '' }
    const events: PaymentEvent[] = [
      {
        type: 'PaymentInitiated',
        data: { ...terms, metadata: { n: String(n), first: NOTE, second: NOTE }, claim, reference_stream },
      },
      n % 11 === 0
        ? { type: 'PaymentFailed', data: { ...terms, code: 'declined', held_by: null } }
        : { type: 'PaymentSucceeded', data: terms },
    ]
    const at = new Date(from + n).toISOString()
    const caller = {
      tenant,
      subject: 'bulk',
      client: 'bulk',
      authority: 'test',
      correlationId: 'bulk',
      causationId: id,
    }
    const made = events.map(event =>
      newEventOf(payment.codec, { event, eventId: randomUUID(), metadata: { ...caller, at, schemaVersion: 1 } }),
    )
    await store.append(`payment-${id}`, made, 'no_stream')
  })
}
