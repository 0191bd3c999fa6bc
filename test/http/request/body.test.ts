import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Answer, type Asked, type Client, clientOf, retryWhile } from '../../support/client.ts'
import { sharedService, type TestService, writtenSince } from '../../support/service.ts'

const BODY_MAX_BYTES = 64 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }
const TENANT = 'bodies'

const pointersOf = ({ body }: Answer): string[] => body.errors.map(({ pointer }: { pointer: string }) => pointer)

describe('a body', () => {
  let service: TestService
  let client: Client
  let store: EventStore
  let position: bigint
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store })
    position = await store.head()
  })
  after(() => store.close())

  const post = (requested: Asked): Promise<Answer> => client.request('POST', '/orders', requested)
  const refuses = async (requested: Asked, status: number, code: string, what: string): Promise<Answer> => {
    const answer = await post(requested)
    expect(answer.body, what).to.include({ status, code })
    return answer
  }

  it('that does not match is refused with a pointer to every violation', async () => {
    const body = {
      currency: 'usd',
      lines: [{ sku: '', quantity: 0, unit_amount: 1.5, extra: 1 }, 7, { sku: 'a', quantity: 1 }],
      metadata: { 'a/b': 1, '~': 'x'.repeat(501) },
      bogus: true,
      customer_reference: 5,
    }
    const answer = await refuses({ body }, 400, 'validation_failed', 'many')
    expect(pointersOf(answer)).to.have.members([
      ...['/currency', '/lines/0/sku', '/lines/0/quantity', '/lines/0/unit_amount', '/lines/0/extra', '/lines/1'],
      ...['/lines/2/unit_amount', '/metadata/a~1b', '/metadata/~0', '/bogus', '/customer_reference'],
    ])
    for (const { code, detail } of answer.body.errors)
      expect([code, detail].every(text => text.length > 0)).to.equal(true)
  })

  it('may have 64 KiB at most, with a length or in chunks', async () => {
    const text = JSON.stringify(anOrder())
    const whole = text.padEnd(BODY_MAX_BYTES, ' ')
    await refuses({ raw: `${whole} ` }, 413, 'payload_too_large', 'announced')
    const sendInChunks = async (size: number) => {
      const chunks = ReadableStream.from(
        [text, ' '.repeat(1_000), ' '.repeat(size - 1_000 - text.length)].map(part => Buffer.from(part)),
      )
      const headers = { ...JSON_TYPE, authorization: `Bearer ${await service.token({ tenant: TENANT })}` }
      const response = await fetch(`${service.api}/orders`, {
        method: 'POST',
        headers,
        body: chunks,
        duplex: 'half',
      })
      return { status: response.status, body: (await response.json()) as { code?: string } }
    }
    const chunked = (size: number) =>
      retryWhile(
        () => sendInChunks(size),
        ({ body }) => body.code === 'overloaded',
      )
    expect(await chunked(BODY_MAX_BYTES + 1)).to.deep.include({ status: 413 })
    expect((await chunked(1_000_000)).body.code).to.equal('payload_too_large')
    expect(await writtenSince(store, position, TENANT)).to.deep.equal([])
    expect((await post({ raw: whole })).status).to.equal(201)
    expect((await chunked(BODY_MAX_BYTES)).status).to.equal(201)
  })

  it('of another media type, or compressed, is refused with the supported one', async () => {
    for (const headers of [{ 'content-type': 'text/plain' }, { ...JSON_TYPE, 'content-encoding': 'gzip' }]) {
      const answer = await refuses({ body: anOrder(), headers }, 415, 'unsupported_media_type', JSON.stringify(headers))
      expect(answer.headers.get('accept-post')).to.equal('application/json')
    }
  })

  it('keeps every valid character', async () => {
    const metadata = { 'é/~': '𝄞 \u2028 \u007f \ufeff', constructor: 'x', toString: 'y', '1': 'one', ' ': '' }
    const created = await post({ body: { ...anOrder(), customer_reference: '日本\t"\\', metadata } })
    expect(created.status, created.text).to.equal(201)
    const read = await client.get(created.headers.get('location') ?? '')
    expect(read.body.customer_reference).to.equal('日本\t"\\')
    expect(read.body.metadata).to.deep.equal(metadata)
  })
})
