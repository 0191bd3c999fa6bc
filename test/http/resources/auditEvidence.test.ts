import { expect } from 'chai'
import { canonical, type HeadLine, hashOfLeaf, isSignedBy, rootByPath } from '../../evidence/independent.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

type ListedHead = HeadLine & { readonly public_key: string }

type Proof = {
  readonly leaf_hash: string
  readonly leaf_index: number
  readonly inclusion_path: readonly string[]
  readonly head: ListedHead
}

/** The head as it was signed. */
const signedOf = ({ public_key: _, ...head }: ListedHead): HeadLine => head
const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex')

describe('tamper evidence over HTTP', () => {
  let service: TestService
  let client: Client
  let other: Client

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: 'evident' }))
    other = clientOf(service.api, await service.token({ tenant: 'evident-other' }))
  })

  const eventOf = async (of: Client): Promise<string> => {
    const { body } = await of.post('/orders', anOrder())
    return (await of.get(`/orders/${body.id}/history`)).body.items[0].event_id
  }
  const proofOf = (of: Client, event: string, query = '') =>
    eventually(async () => {
      const answer = await of.get(`/audit/proof/${event}${query}`)
      return answer.status === 200 && answer.body
    })

  it('proves an event of the tenant, which code from the documents alone verifies', async () => {
    const event = await eventOf(client)
    const proof = await proofOf(client, event)
    const leaf = hashOfLeaf(Buffer.from(proof.event))
    expect(leaf.toString('hex')).to.equal(proof.leaf_hash)
    const root = rootByPath(leaf, proof.leaf_index, proof.head.tree_size, proof.inclusion_path.map(bytesOf))
    expect(root?.toString('hex')).to.equal(proof.head.root)
    expect(isSignedBy(signedOf(proof.head), proof.head.public_key)).to.equal(true)
    const record = JSON.parse(proof.event)
    expect(record).to.include({ id: event, type: 'OrderCreated', v: 1 })
    expect(record.metadata.tenant).to.equal('evident')
  })

  /** The root that the leaf's hash leads to, without the event. */
  const rootOf = ({ leaf_hash, leaf_index, inclusion_path, head }: Proof): string | undefined =>
    rootByPath(bytesOf(leaf_hash), leaf_index, head.tree_size, inclusion_path.map(bytesOf))?.toString('hex')

  it('shows the whole event where there is nothing to withhold', async () => {
    const proof = await proofOf(client, await eventOf(client))
    expect(proof).to.deep.include({ event_state: 'present', withheld: [] })
  })

  it('proves an event of an API key by its leaf, and shows nothing of it', async () => {
    const issued = await client.post('/api-keys', { name: 'nightly', scopes: ['orders:read'] })
    const rotated = await client.post(`/api-keys/${issued.body.id}:rotate`)
    expect([issued.status, rotated.status]).to.deep.equal([201, 200])
    const { items } = await eventually(async () => {
      const { body } = await client.get(`/audit-records?resource=${issued.body.id}&decision=granted`)
      return body.items.length >= 2 && body
    })
    for (const { id } of items) {
      const proof = await proofOf(client, id)
      expect(proof).to.deep.include({ event: null, event_state: 'present' })
      expect(proof.withheld).to.deep.equal([{ pointer: '', reason: 'credential' }])
      expect(JSON.stringify(proof)).not.to.match(/nonce|ApiKey/)
      expect(rootOf(proof)).to.equal(proof.head.root)
    }
  })

  it('withholds the idempotency record of an event, whose leaf leads to the head all the same', async () => {
    const { body } = await client.post('/orders', anOrder(), { 'idempotency-key': newKey() })
    const event = (await client.get(`/orders/${body.id}/history`)).body.items[0].event_id
    const proof = await proofOf(client, event)
    expect(proof.withheld).to.deep.equal([{ pointer: '/data/claim', reason: 'idempotency_record' }])
    expect(proof.event_state).to.equal('present')
    const shown = JSON.parse(proof.event)
    expect(canonical(shown)).to.equal(proof.event)
    expect(shown.data).to.include({ currency: 'USD' }).and.not.to.have.property('claim')
    expect(proof.event).not.to.match(/key_hash|fingerprint/)
    expect(rootOf(proof)).to.equal(proof.head.root)
  })

  it('proves it against an earlier head too, and against none that is older than the event', async () => {
    const first = await proofOf(client, await eventOf(client))
    const later = await proofOf(client, await eventOf(client))
    const event = JSON.parse(first.event).id
    const again = await proofOf(client, event, `?tree_size=${first.head.tree_size}`)
    expect(again.head).to.deep.equal(first.head)
    expect(again.inclusion_path).to.deep.equal(first.inclusion_path)
    const newer = JSON.parse(later.event).id
    if (later.leaf_index >= first.head.tree_size)
      expect((await client.get(`/audit/proof/${newer}?tree_size=${first.head.tree_size}`)).status).to.equal(404)
    expect((await client.get(`/audit/proof/${event}?tree_size=${later.head.tree_size + 1_000_000}`)).status).to.equal(
      404,
    )
    expect((await client.get(`/audit/proof/${event}?tree_size=x`)).status).to.equal(400)
  })

  it('answers for an event of another tenant as for one that does not exist', async () => {
    const event = await eventOf(other)
    await proofOf(other, event)
    const [theirs, none] = [
      await client.get(`/audit/proof/${event}`),
      await client.get('/audit/proof/00000000-0000-4000-8000-000000000000'),
    ]
    expect([theirs.status, none.status]).to.deep.equal([404, 404])
    expect(theirs.body.code).to.equal(none.body.code)
    expect(theirs.body.detail).to.equal(none.body.detail)
    expect((await client.get('/audit/proof/no-uuid')).status).to.equal(404)
  })

  it('lists the heads in pages, newest first, each signed', async () => {
    await proofOf(client, await eventOf(client))
    await proofOf(client, await eventOf(client))
    const sizes: number[] = []
    let cursor = ''
    for (let page = 0; page < 3 && cursor !== 'null'; page += 1) {
      const { status, body } = await client.get(`/audit/heads?limit=1${cursor && `&cursor=${cursor}`}`)
      expect(status).to.equal(200)
      for (const head of body.items as ListedHead[]) {
        expect(isSignedBy(signedOf(head), head.public_key)).to.equal(true)
        sizes.push(head.tree_size)
      }
      cursor = String(body.page.next_cursor)
    }
    expect(sizes.length).to.be.greaterThan(1)
    expect(sizes).to.deep.equal(sizes.toSorted((a, b) => b - a))
  })

  it('needs the scope audit:read', async () => {
    const reader = clientOf(service.api, await service.token({ tenant: 'evident', scopes: ['orders:read'] }))
    for (const path of ['/audit/heads', '/audit/proof/00000000-0000-4000-8000-000000000000', '/audit-records'])
      expect((await reader.get(path)).status, path).to.equal(403)
  })

  it('records each read of audit data', async () => {
    const event = await eventOf(client)
    await proofOf(client, event)
    const looks = [
      ['list_audit_heads', null, await client.get('/audit/heads')],
      ['read_audit_proof', event, await client.get(`/audit/proof/${event}`)],
      ['list_audit_records', null, await client.get('/audit-records')],
    ] as const
    for (const [operation, resource, answer] of looks) {
      expect(answer.status, operation).to.equal(200)
      const id = answer.headers.get('x-correlation-id')
      const records = await eventually(async () => {
        const { items } = (await client.get(`/audit-records?correlation_id=${id}`)).body
        return items.length > 0 && items
      })
      expect(records[0]).to.include({
        decision: 'granted',
        operation,
        resource,
        subject: 'tester',
        tenant_id: 'evident',
      })
    }
  })
})
