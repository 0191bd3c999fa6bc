import { createHash, createHmac } from 'node:crypto'
import { expect } from 'chai'
import { idOfKey, newIdempotencyRecord } from '../../../src/commands/idempotency/record.ts'
import { derivedId } from '../../../src/lib/identifiers.ts'
import { ID_PREFIXES } from '../../../streams/ids.ts'

const secret = Buffer.alloc(32, 7)
const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'create_payment' }

describe('the id from a key', () => {
  it('is always derived in the same way, because a stored stream would not be found otherwise', () =>
    expect(idOfKey('pay', { scope, key: 'order-17-payment-1', secret })).to.equal('pay_01ABVK5D1FTHPC66V0PSK9R82Z'))

  it('differs with tenant, caller, operation, key and secret, and cannot be computed without the secret', () => {
    const base = { scope, key: 'k-1', secret }
    const guessed = derivedId('pay', scope.tenant, scope.subject, scope.client, scope.operation, 'k-1')
    expect(idOfKey('pay', base)).to.not.equal(guessed)
    const others = [
      { ...base, key: 'k-2' },
      { ...base, secret: Buffer.alloc(32, 8) },
      ...(['tenant', 'subject', 'client', 'operation'] as const).map(name => ({
        ...base,
        scope: { ...scope, [name]: 'other' },
      })),
    ]
    expect(new Set([base, ...others].map(one => idOfKey('pay', one))).size).to.equal(others.length + 1)
  })
})

describe('the idempotency record of a key', () => {
  const claim = (request: Parameters<typeof newIdempotencyRecord>[1], key = 'secret-key', of = secret) =>
    newIdempotencyRecord({ scope, key, secret: of }, request, '2026-12-31T00:00:00.000Z')

  it('has the fingerprint of the request, in any order of its members', () => {
    const one = claim({ amount: 10, metadata: { b: '1', a: '2' } })
    expect(claim({ metadata: { a: '2', b: '1' }, amount: 10 }).fingerprint).to.equal(one.fingerprint)
    expect(claim({ amount: 11, metadata: { b: '1', a: '2' } }).fingerprint).to.not.equal(one.fingerprint)
    expect(one.fingerprint).to.match(/^[0-9a-f]{64}$/)
  })

  it('has the caller and the expiry, and not the key', () => {
    expect(claim({})).to.deep.include({
      caller: { subject: 'clerk', client: 'shop' },
      expires_at: '2026-12-31T00:00:00.000Z',
      request: {},
    })
    expect(JSON.stringify(claim({}))).to.not.contain('secret-key')
    expect(claim({}, 'a').key_hash).to.not.equal(claim({}, 'b').key_hash)
  })

  it('has a hash of the key that cannot be computed without the secret of the log', () => {
    const { key_hash } = claim({})
    const text = JSON.stringify([scope.tenant, scope.subject, scope.client, scope.operation, 'secret-key'])
    expect(key_hash)
      .to.match(/^[0-9a-f]{64}$/)
      .and.to.equal(claim({}).key_hash)
    expect(key_hash).to.not.equal(createHash('sha256').update(text).digest('hex'))
    expect(key_hash).to.not.equal(claim({}, 'secret-key', Buffer.alloc(32, 8)).key_hash)
  })

  it('has a hash of the key that is not the one from which an id is made', () => {
    const { tenant, subject, client, operation } = scope
    const hashOf = (use: string): string =>
      createHmac('sha256', secret)
        .update(JSON.stringify([use, tenant, subject, client, operation, 'secret-key']))
        .digest('hex')
    const ids = ID_PREFIXES.map(hashOf)
    expect(ids).to.not.include(claim({}).key_hash)
  })
})
