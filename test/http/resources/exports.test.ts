import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { Client as PostgresClient } from 'pg'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { operationEntity } from '../../../src/commands/entities.ts'
import { createLedger, handle } from '../../../src/commands/commandHandler.ts'
import { randomId } from '../../../src/lib/identifiers.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import type { EventStore } from '../../../src/ports.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { EXPORT_FORMATS } from '../../../streams/operation/index.ts'
import { type Answer, anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { newKey, pay, wordsOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { askFor, download, ended, fetched, foldedUpTo, manyPayments } from '../../support/exportSteps.ts'
import { STREAM_RESOURCES, withTextsOf } from '../../support/exportSteps.ts'
import { inFormat, type Read } from '../../support/exportFileReaders.ts'
import { sharedService, type TestService, writtenBy } from '../../support/service.ts'

const TENANT = 'exports'
const MISSING = 'op_00000000000000000000000000'
/** More rows than one batch of the query (500), in seven chunks. */
const MANY = 1_500
const SHORT_LIFE_MIN_MS = 4_000
const LIFE_TIMES = 6
const LONGER_THAN_CHUNK_MS = 1_500

describe('exports', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let postgres: PostgresClient
  /** The position of the last write of the fixture. */
  let written: bigint

  const withScopes = async (...scopes: string[]): Promise<Client> =>
    clientOf(service.api, await service.token({ tenant: TENANT, scopes }))

  const fixture = async (): Promise<void> => {
    const order = { ...anOrder(700), customer_reference: '=1+1', description: 'Zürich ☃, "best"\r\nnew line' }
    await client.post('/orders', { ...order, metadata: { '@key': '-2' } })
    await client.post('/orders', { ...order, currency: 'JPY', customer_reference: null, description: null })
    const gone = await client.post('/orders', order)
    await client.request('DELETE', `/orders/${gone.body.id}`, {
      headers: { 'if-match': gone.headers.get('etag') ?? '' },
    })
    const { invoiceId } = await approvedInvoice(client, 999_999_999_999)
    await pay(client, aPayment(invoiceId, { amount: 999_999_999_000, reference: '+44', metadata: { shop: '☃' } }))
    await pay(client, aPayment(invoiceId, { amount: 99, settlement: 'deferred' }))
    const last = await pay(client, aPayment(invoiceId, { amount: 1 }))
    written = BigInt(last.headers.get('ledger-position') ?? 0)
  }

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store })
    postgres = new PostgresClient({ connectionString: service.addresses.postgres })
    await postgres.connect()
    await fixture()
  })
  after(async () => {
    await store.close()
    await postgres.end()
  })

  describe('POST /exports', () => {
    it('answers 202 with an operation that can be read at once and is kept for 30 days', async () => {
      const before = Date.now()
      const reply = await client.post('/exports', { resource: 'orders', format: 'csv', metadata: { month: 'May' } })
      expect(reply.status).to.equal(202)
      expect(reply.headers.get('location')).to.equal(`/operations/${reply.body.id}`)
      expect(reply.body).to.include({ kind: 'export', state: 'pending', version: 0, result: null, error: null })
      expect(reply.body.metadata).to.deep.equal({ month: 'May' })
      expect(reply.body.progress).to.deep.equal({ done: 0, total: null, unit: 'rows', rate: null, eta_seconds: null })
      expect(Date.parse(reply.body.expires_at)).to.be.within(before + 30 * DAY_MS, Date.now() + 30 * DAY_MS)
      const read = await client.get(`/operations/${reply.body.id}`)
      expect(read.body.version).to.be.at.least(reply.body.version)
      expect(BigInt(reply.headers.get('ledger-position') ?? 0) > written).to.equal(true)
    })

    it('creates one export per Idempotency-Key, and shows the outcome of the key', async () => {
      const key = { 'idempotency-key': newKey() }
      const first = await client.post(
        '/exports',
        { resource: 'orders', format: 'csv', filters: { currency: 'USD' } },
        key,
      )
      const again = await client.post(
        '/exports',
        { format: 'csv', filters: { currency: 'USD' }, resource: 'orders' },
        key,
      )
      expect([again.status, again.text]).to.deep.equal([202, first.text])
      expect(again.headers.get('location')).to.equal(first.headers.get('location'))
      expect(again.headers.get('idempotent-replayed')).to.equal('true')
      const other = await client.post('/exports', { resource: 'orders', format: 'jsonl' }, key)
      expect(other.body).to.include({ status: 422, code: 'idempotency_key_reused' })
      expect(other.body.errors.map(({ pointer }: { pointer: string }) => pointer)).to.have.members([
        '/format',
        '/filters/currency',
      ])
      const outcome = await client.get(`/idempotency-keys/${key['idempotency-key']}?operation=create_export`)
      expect(outcome.status, outcome.text).to.equal(200)
      expect(outcome.text).to.include(`/operations/${first.body.id}`)
    })

    it('refuses unknown members and malformed values, with a pointer to each', async () => {
      const refused: readonly (readonly [body: object, pointers: readonly string[]])[] = [
        [{}, ['/resource']],
        [{ resource: 'refunds', format: 'csv' }, ['/resource']],
        [{ resource: 'orders' }, ['/format']],
        [{ resource: 'orders', format: 'xlsx' }, ['/format']],
        [{ resource: 'orders', format: 'CSV', tenant: 'x' }, ['/format', '/tenant']],
        [{ resource: 'orders', format: 'csv', filters: { state: 'paid' } }, ['/filters/state']],
        [{ resource: 'invoices', format: 'csv', filters: { reference: 'x' } }, ['/filters/reference']],
        [{ resource: 'payments', format: 'csv', filters: { currency: 'usd' } }, ['/filters/currency']],
        [{ resource: 'payments', format: 'csv', filters: { created_after: 'May' } }, ['/filters/created_after']],
        [{ resource: 'payments', format: 'csv', filters: null }, ['/filters']],
        [{ resource: 'payments', format: 'csv', metadata: { a: 1 } }, ['/metadata/a']],
      ]
      const after = await store.head()
      const answers: Answer[] = []
      for (const [body, pointers] of refused) {
        const answer = await client.post('/exports', body)
        answers.push(answer)
        expect(answer.body, JSON.stringify(body)).to.include({ status: 400, code: 'validation_failed' })
        const actual = answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)
        expect(actual, JSON.stringify(body)).to.have.members(pointers)
      }
      expect(await writtenBy(store, { after, answers, withAuditRecords: true })).to.deep.equal([])
    })
  })

  describe('the file', () => {
    for (const resource of STREAM_RESOURCES)
      for (const format of EXPORT_FORMATS)
        it(`of ${resource} as ${format} equals the streams at the position of its manifest`, async () => {
          const id = await askFor(client, { resource, format })
          const { manifest, rows } = await fetched(service, client, { id, tenant: TENANT })
          const position = BigInt(manifest.to_position)
          expect(manifest).to.include({ resource, format, from_position: '0' })
          expect(position >= written, 'the file has the last write of the caller').to.equal(true)
          const folded = await withTextsOf(postgres, await foldedUpTo(store, resource, { tenant: TENANT, position }))
          expect(folded.length).to.be.at.least(resource === 'invoices' ? 1 : 3)
          expect(rows).to.deep.equal(folded.map(view => inFormat(format, view)))
        })

    it('waits until the read model includes everything written before the request', async () => {
      // Readers are not blocked by this lock; writers of the rows are.
      await postgres.query('begin; lock table orders_v1 in share mode')
      const order = await client.post('/orders', anOrder(1))
      const id = await askFor(client, { resource: 'orders', format: 'jsonl' })
      await sleep(700)
      const waiting = await client.get(`/operations/${id}`)
      await postgres.query('commit')
      expect(waiting.body.state).to.equal('pending')
      const { rows } = await fetched(service, client, { id, tenant: TENANT })
      expect(rows[0]?.['id']).to.equal(order.body.id)
    })

    it('as jsonl has the same views as GET', async () => {
      const id = await askFor(client, { resource: 'payments', format: 'jsonl' })
      const { bytes } = await fetched(service, client, { id, tenant: TENANT })
      const lines = bytes.toString().split('\n').slice(0, -1)
      expect(lines).to.not.have.length(0)
      for (const line of lines) {
        const { id: paymentId } = JSON.parse(line) as { id: string }
        expect((await client.get(`/payments/${paymentId}`)).text).to.equal(line)
      }
    })

    it('as csv has no cell that a spreadsheet would calculate', async () => {
      const id = await askFor(client, { resource: 'orders', format: 'csv' })
      const { rows } = await fetched(service, client, { id, tenant: TENANT })
      expect(rows.map(row => row['customer_reference'])).to.include("'=1+1")
      for (const cell of rows.flatMap(row => Object.values(row))) expect(cell ?? '').to.not.match(/^[=+\-@\t\r]/)
    })

    it('has the rows that match the filters', async () => {
      const select = async (filters: Record<string, string>): Promise<Read[]> => {
        const id = await askFor(client, { resource: 'payments', format: 'jsonl', filters })
        const { manifest, rows } = await fetched(service, client, { id, tenant: TENANT })
        expect(manifest.filters).to.deep.equal(filters)
        return rows
      }
      const all = await select({})
      expect((await select({ state: 'pending' })).map(row => row['settlement'])).to.deep.equal(['deferred'])
      expect((await select({ reference: '+44' })).map(row => row['amount'])).to.deep.equal([999_999_999_000])
      expect(await select({ currency: 'JPY' })).to.deep.equal([])
      const [, second] = all
      const before = { created_before: String(second?.['created_at']) }
      const after = { created_after: String(second?.['created_at']) }
      expect([...(await select(after)), second, ...(await select(before))]).to.deep.equal(all)
    })

    it('is sent with its name, length and entity tag', async () => {
      const id = await askFor(client, { resource: 'invoices', format: 'csv' })
      const { manifest } = await fetched(service, client, { id, tenant: TENANT })
      const { headers } = await download(service, id, TENANT)
      expect(headers.get('content-type')).to.equal('text/csv; charset=utf-8; header=present')
      expect(headers.get('content-disposition')).to.equal(`attachment; filename="invoices-${id}.csv"`)
      expect(headers.get('etag')).to.equal(`"${manifest.sha256}"`)
      expect(headers.get('cache-control')).to.equal('private, no-cache, no-transform')
      const cached = await download(service, id, TENANT, { 'if-none-match': `W/"x", "${manifest.sha256}"` })
      expect([cached.status, cached.bytes.length]).to.deep.equal([304, 0])
      const head = await client.request('HEAD', `/exports/${id}/content`)
      expect([head.status, head.text, head.headers.get('content-length')]).to.deep.equal([
        200,
        '',
        String(manifest.byte_count),
      ])
      expect((await download(service, id, TENANT, { accept: 'image/png' })).status).to.equal(406)
      const unchanged = await client.get(`/exports/${id}/manifest`)
      const again = await client.get(`/exports/${id}/manifest`, {
        'if-none-match': unchanged.headers.get('etag') ?? '',
      })
      expect(again.status).to.equal(304)
    })

    it('is announced as a fact, with its manifest', async () => {
      const id = await askFor(client, { resource: 'invoices', format: 'parquet' })
      const { manifest } = await fetched(service, client, { id, tenant: TENANT })
      const fact = await eventually(async () => (await client.get(`/events?subject=${id}`)).body.items[0])
      const { created_at: _, ...data } = manifest
      expect(fact.type).to.equal('export.completed')
      expect(fact.data).to.deep.equal(data)
    })
  })

  describe('are listed', () => {
    it('newest first, by state and kind, as GET by id shows them', async () => {
      const id = await askFor(client, { resource: 'orders', format: 'csv' })
      const { body } = await ended(client, id)
      const listed = await eventually(async () => {
        const page = await client.get('/operations?kind=export&state=succeeded&limit=3')
        return page.body.items[0]?.id === id && page.body.items
      })
      expect(listed[0]).to.deep.equal(body)
      expect(listed).to.have.length(3)
      const none = await client.get('/operations?state=cancelled&created_after=2099-01-01T00:00:00Z')
      expect(none.body.items).to.deep.equal([])
      expect((await client.get('/operations?kind=create_payment')).body).to.include({ code: 'validation_failed' })
      expect((await client.get('/operations?resource=orders')).body).to.include({ code: 'unknown_parameter' })
    })
  })

  describe('belong to their tenant, and to those with the scope', () => {
    const paths = (id: string) =>
      [
        ['GET', `/operations/${id}`],
        ['GET', `/exports/${id}/manifest`],
        ['GET', `/exports/${id}/content`],
        ['POST', `/operations/${id}:cancel`],
      ] as const

    it('so that they are 404 for another tenant, like missing ones', async () => {
      const id = await askFor(client, { resource: 'orders', format: 'csv' })
      await ended(client, id)
      const otherTenant = clientOf(service.api, await service.token({ tenant: 'exports-other' }))
      for (const [method, path] of paths(id)) {
        const answer = await otherTenant.request(method, path)
        const missing = await otherTenant.request(method, path.replace(id, MISSING))
        expect(answer.body, path).to.include({ status: 404, code: 'resource_not_found' })
        expect(wordsOf(answer)).to.deep.equal(wordsOf(missing))
      }
      expect((await otherTenant.get('/operations')).body.items).to.deep.equal([])
    })

    it('so that each reading needs exports:read, and creating and cancelling exports:write', async () => {
      const [reader, writer] = [
        await withScopes('exports:read', 'orders:read'),
        await withScopes('exports:write', 'orders:read'),
      ]
      const id = await askFor(writer, { resource: 'orders', format: 'csv' })
      await ended(reader, id)
      for (const [method, path] of paths(id)) {
        const [permitted, refused] = method === 'GET' ? [reader, writer] : [writer, reader]
        expect((await permitted.request(method, path)).status, path).to.equal(200)
        expect((await refused.request(method, path)).body, path).to.include({ status: 403, code: 'insufficient_scope' })
      }
      expect((await reader.post('/exports', { resource: 'orders', format: 'csv' })).status).to.equal(403)
      expect((await writer.get('/operations')).status).to.equal(403)
      expect((await clientOf(service.api).get(`/exports/${id}/content`)).status).to.equal(401)
    })

    it('while the operation of a payment needs payments:read only', async () => {
      const payer = await withScopes('payments:read')
      const { items } = (await client.get('/payments?state=succeeded')).body
      const operation = await payer.get(`/operations/${items[0].id.replace('pay_', 'op_')}`)
      expect(operation.body, operation.text).to.include({
        kind: 'create_payment',
        state: 'succeeded',
        expires_at: null,
      })
      expect(operation.body.progress).to.include({ done: 1, total: 1, unit: 'payments' })
      const id = await askFor(client, { resource: 'payments', format: 'csv' })
      expect((await payer.get(`/operations/${id}`)).body).to.include({ status: 403, code: 'insufficient_scope' })
      const cancelled = await client.post(`/operations/${operation.body.id}:cancel`, {})
      expect(cancelled.body).to.include({ code: 'resource_not_found' })
      expect((await client.get(`/exports/${operation.body.id}/manifest`)).status).to.equal(404)
    })
  })

  describe('under way', () => {
    const SLOW_TENANT = 'exports-slow'
    let slow: Client
    /** A trigger that runs this statement before each chunk is written: a test can delay the worker in the database only. */
    const onChunk = (statement: string): Promise<unknown> =>
      postgres.query(`create or replace function hold_up() returns trigger language plpgsql as
        $$ begin ${statement}; return new; end $$`)
    const seqsOf = async (id: string): Promise<string[]> => {
      const { rows } = await postgres.query<{ seq: string }>(
        'select seq::text from export_chunks where operation_id = $1',
        [id],
      )
      return rows.map(({ seq }) => seq)
    }
    const chunksOf = async (id: string): Promise<number> => (await seqsOf(id)).length
    /** The number of chunks of a complete export as jsonl. */
    let chunksOfAll = 0

    before(async () => {
      slow = clientOf(service.api, await service.token({ tenant: SLOW_TENANT }))
      await manyPayments(store, SLOW_TENANT, MANY)
      const complete = await askFor(slow, { resource: 'payments', format: 'jsonl' })
      await fetched(service, slow, { id: complete, tenant: SLOW_TENANT })
      chunksOfAll = await chunksOf(complete)
      await onChunk('null')
      await postgres.query(
        'create trigger hold_up before insert on export_chunks for each row execute function hold_up()',
      )
    })
    afterEach(() => onChunk('null'))
    after(() => postgres.query('drop function if exists hold_up cascade'))

    it(`of ${MANY} payments equal the streams in each format`, async () => {
      for (const format of EXPORT_FORMATS) {
        const id = await askFor(slow, { resource: 'payments', format })
        const { manifest, rows } = await fetched(service, slow, { id, tenant: SLOW_TENANT })
        const position = BigInt(manifest.to_position)
        const folded = await foldedUpTo(store, 'payments', { tenant: SLOW_TENANT, position })
        expect(folded).to.have.length(MANY)
        expect(rows).to.deep.equal(folded.map(view => inFormat(format, view)))
      }
    })

    type Progress = { done: number; total: number; rate: number; eta_seconds: number | null }
    /** The progress of an export at every reading, while each of its chunks takes this time. */
    const observed = async (chunkSeconds: number): Promise<Progress[]> => {
      await onChunk(`perform pg_sleep(${chunkSeconds})`)
      const id = await askFor(slow, { resource: 'payments', format: 'jsonl' })
      const texts = new Map<string, string>()
      const seen: Progress[] = []
      for (let state = ''; state !== 'succeeded'; ) {
        const { body, headers, text } = await slow.get(`/operations/${id}`)
        const etag = headers.get('etag') ?? ''
        expect(texts.get(etag) ?? text, etag).to.equal(text)
        texts.set(etag, text)
        if (body.state === 'running' && body.progress.total !== null) seen.push(body.progress)
        state = body.state
      }
      expect(new Set(texts.values()).size, 'representations').to.equal(texts.size)
      return seen
    }

    it('show their progress, and no tag stands for two representations', async () => {
      const stepsIn = (seen: readonly Progress[]): number => new Set(seen.map(({ done }) => done)).size
      let seen = await observed(0.15)
      // A busy machine may read too slowly to see each step.
      for (let chunkSeconds = 0.3; stepsIn(seen) < 3 && chunkSeconds < 2; chunkSeconds *= 2)
        seen = await observed(chunkSeconds)
      const done = seen.map(progress => progress.done)
      expect(done).to.deep.equal(done.toSorted((a, b) => a - b))
      expect(stepsIn(seen)).to.be.at.least(3)
      const middle = seen.find(progress => progress.done > 0)
      expect(middle).to.include({ total: MANY, unit: 'rows' })
      expect(middle?.rate).to.be.greaterThan(0)
      expect(middle?.eta_seconds).to.be.within(0, 60)
    })

    it('answer 304 to the tag of their present state', async () => {
      await onChunk('perform pg_sleep(0.5)')
      const id = await askFor(slow, { resource: 'payments', format: 'jsonl' })
      const [etag, state] = await eventually(async () => {
        const { body, headers } = await slow.get(`/operations/${id}`)
        const tag = headers.get('etag') ?? ''
        // The export may have progressed between two requests, but not between all of them.
        const again = await slow.get(`/operations/${id}`, { 'if-none-match': tag })
        return body.progress.done > 0 && again.status === 304 && [tag, body.state]
      })
      await ended(slow, id)
      // On a slow machine the first tag may be that of the end.
      const expected = state === 'running' ? 200 : 304
      expect((await slow.get(`/operations/${id}`, { 'if-none-match': etag })).status).to.equal(expected)
    })

    it('have no file before they are complete', async () => {
      await onChunk('perform pg_sleep(1)')
      const id = await askFor(slow, { resource: 'payments', format: 'jsonl' })
      await eventually(async () => (await chunksOf(id)) > 0)
      for (const what of ['manifest', 'content']) {
        const answer = await slow.get(`/exports/${id}/${what}`)
        expect(answer.body).to.include({ status: 404, code: 'resource_not_found' })
        expect(answer.body.detail).to.include('running')
      }
      await slow.post(`/operations/${id}:cancel`, {})
    })

    it('are cancelled, and every worker stops before the last chunk', async () => {
      await onChunk('perform pg_sleep(1)')
      const id = await askFor(slow, { resource: 'payments', format: 'jsonl' })
      await eventually(async () => (await chunksOf(id)) > 1)
      const cancelled = await slow.post(`/operations/${id}:cancel`, {})
      expect(cancelled.status).to.equal(200)
      expect(cancelled.body).to.include({ state: 'cancelled', result: null, error: null })
      const left = await eventually(async () => {
        const before = await seqsOf(id)
        await sleep(LONGER_THAN_CHUNK_MS)
        // The chunks of a cancelled export are deleted eventually.
        return (await seqsOf(id)).every(seq => before.includes(seq)) && before
      })
      expect(left).to.have.length.below(chunksOfAll)
      const again = await slow.post(`/operations/${id}:cancel`, {})
      // The chunk that was under way at the cancellation counts as progress.
      const withoutProgress = ({ body: { progress: _, ...operation } }: Answer): object => operation
      expect([again.status, withoutProgress(again)]).to.deep.equal([200, withoutProgress(cancelled)])
      expect((await slow.get(`/exports/${id}/content`)).body.detail).to.include('cancelled')
    })

    it('can be cancelled before they begin, and are unchanged by a cancellation after their end', async () => {
      const key = { 'idempotency-key': newKey() }
      const reply = await slow.post('/exports', { resource: 'payments', format: 'csv' }, key)
      const cancelled = await slow.post(`/operations/${reply.body.id}:cancel`, {})
      expect(['cancelled', 'succeeded']).to.include(cancelled.body.state)
      const done = await ended(slow, await askFor(slow, { resource: 'orders', format: 'csv' }))
      const late = await slow.post(`/operations/${done.body.id}:cancel`, {})
      expect([late.status, late.body]).to.deep.equal([200, done.body])
      expect(late.headers.get('etag')).to.equal(done.headers.get('etag'))
    })

    it('fail after three failed attempts, with a problem', async () => {
      await onChunk(`raise exception 'broken'`)
      const headers = { 'x-correlation-id': `broken-${newKey()}` }
      const reply = await slow.post('/exports', { resource: 'payments', format: 'csv' }, headers)
      const failed = await ended(slow, reply.body.id)
      expect(failed.body).to.include({ state: 'failed', result: null })
      expect(failed.body.error).to.include({
        code: 'internal_error',
        status: 500,
        instance: `/operations/${reply.body.id}`,
        correlation_id: headers['x-correlation-id'],
      })
      const events = []
      for await (const { type } of store.readStream(`operation-${reply.body.id}`)) events.push(type)
      expect(events).to.deep.equal([
        'ExportRequested',
        ...['OperationStarted', 'OperationAttemptFailed', 'OperationStarted', 'OperationAttemptFailed'],
        ...['OperationStarted', 'OperationFailed'],
      ])
      await onChunk('null')
      expect((await ended(slow, await askFor(slow, { resource: 'payments', format: 'csv' }))).body.state).to.equal(
        'succeeded',
      )
    })
  })

  it('are 410 after their expiry, and their file is deleted', async () => {
    const world = realWorld()
    const id = randomId('op', world)
    // The lifetime is a multiple of the measured duration of another export, so that the file is read before it expires.
    const startedAtMs = performance.now()
    await fetched(service, client, { id: await askFor(client, { resource: 'orders', format: 'csv' }), tenant: TENANT })
    const lifeMs = Math.max(SHORT_LIFE_MIN_MS, LIFE_TIMES * (performance.now() - startedAtMs))
    const expires_at = new Date(Date.now() + lifeMs).toISOString()
    const command = { type: 'RequestExport' as const, resource: 'orders' as const, format: 'csv' as const, filters: {} }
    const context = {
      ...{ tenant: TENANT, subject: 'tester', client: 'test', authority: 'exports:write' },
      ...{ correlationId: 'expiry-1', commandId: id, at: new Date().toISOString() },
    }
    await handle(createLedger(store, world), operationEntity, id, {
      command: { ...command, expires_at, metadata: {}, claim: null },
      context,
    })
    await fetched(service, client, { id, tenant: TENANT })
    await sleep(Date.parse(expires_at) - Date.now() + 5)
    for (const what of ['manifest', 'content'])
      expect((await client.get(`/exports/${id}/${what}`)).body).to.include({ status: 410, code: 'export_expired' })
    const expired = await eventually(async () => {
      const { body } = await client.get(`/operations/${id}`)
      return body.state === 'expired' && body
    })
    expect(expired).to.include({ result: null, error: null, expires_at })
    await eventually(async () => {
      const kept = `select 1 from export_chunks where operation_id = $1 union all
        select 1 from operation_progress where operation_id = $1`
      return (await postgres.query(kept, [id])).rows.length === 0
    })
  })
})
