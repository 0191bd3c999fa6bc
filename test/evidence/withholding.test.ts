import { expect } from 'chai'
import { canonicalRecord } from '../../src/evidence/record.ts'
import { shownTo } from '../../src/evidence/withholding.ts'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'

const CLAIM = { key_hash: 'k', fingerprint: 'f' }

const stored = (data: JsonObject, bytes = JSON.stringify(data)): StoredEvent => ({
  id: '00000000-0000-4000-8000-000000000001',
  stream: 'payment-pay_1',
  type: 'PaymentInitiated',
  revision: 0n,
  position: 7n,
  data,
  metadata: { tenant: 'acme' },
  storedAt: '2026-01-01T00:00:00.000Z',
  bytes: {
    data: Buffer.from(bytes),
    metadata: Buffer.from('{"tenant":"acme"}'),
    contentType: 'application/json',
    createdTicks: 0n,
  },
})
const shown = (event: StoredEvent, stream = event.stream) => shownTo(stream, canonicalRecord(event))

describe('what a proof withholds of an event', () => {
  it('is nothing of one without an idempotency record, whose bytes are those of the leaf', () => {
    for (const data of [{ amount: 1 }, { amount: 1, claim: null }]) {
      const event = stored(data)
      expect(shown(event)).to.deep.equal({ event: canonicalRecord(event).toString(), withheld: [] })
    }
  })

  it('is the idempotency record alone, and the rest stays canonical', () => {
    const { event, withheld } = shown(stored({ amount: 1, claim: CLAIM }))
    expect(event).to.equal(canonicalRecord(stored({ amount: 1 })).toString())
    expect(withheld).to.deep.equal([{ pointer: '/data/claim', reason: 'idempotency_record' }])
  })

  it('is the whole event in the streams of API keys and of the secret of the log', () => {
    for (const stream of ['apiKey-key_1', 'secret-sec_1'])
      expect(shown(stored({ nonce: 'n' }), stream)).to.deep.equal({
        event: null,
        withheld: [{ pointer: '', reason: 'credential' }],
      })
  })

  it('is data in a form that this service does not write, in which a record could be hidden', () => {
    const { event, withheld } = shown(stored({ claim: CLAIM }, '{ "claim": {"key_hash": "k"} }'))
    expect(event).not.to.include('data_hex')
    expect(withheld).to.deep.equal([{ pointer: '/data_hex', reason: 'not_readable' }])
  })
})
