import { expect } from 'chai'
import { ZodError } from 'zod'
import { recordedOf } from '../../src/lib/storedEvents.ts'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'

const METADATA: JsonObject = {
  tenant: 'acme',
  subject: 'sub',
  client: 'client',
  authority: 'payments:write',
  $correlationId: 'correlation',
  $causationId: 'causation',
  at: '2026-01-02T03:04:05.678Z',
  schemaVersion: 1,
}
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

const codec = { decode: (type: string, data: unknown) => ({ type, data: data as object }) }

const metadataOf = (metadata: unknown) => {
  const places = { stream: 'payment-pay_1', revision: 0n, position: 7n, storedAt: '2026-01-02T03:04:05.680Z' }
  const stored: StoredEvent = { id: 'e', type: 'Some', data: {}, metadata: metadata as JsonObject, ...places }
  return recordedOf(codec, stored).metadata
}

describe('the metadata of a stored event', () => {
  const { $correlationId: correlationId, $causationId: causationId, ...others } = METADATA
  const read = { ...others, correlationId, causationId }

  it('has the members that the service stores, and no others', () => {
    expect(metadataOf(METADATA)).to.deep.equal(read)
    expect(metadataOf({ ...METADATA, added: true })).to.deep.equal(read)
    expect(metadataOf({ ...METADATA, traceparent: TRACEPARENT })).to.deep.equal({ ...read, traceparent: TRACEPARENT })
    expect(metadataOf({ ...METADATA, workload: true })).to.deep.equal({ ...read, workload: true })
  })

  it('is refused if a member is missing or has another form', () => {
    for (const name of Object.keys(METADATA)) {
      const { [name]: _, ...without } = METADATA
      for (const wrong of [without, { ...METADATA, [name]: null }, { ...METADATA, [name]: [] }])
        expect(() => metadataOf(wrong), name).to.throw(ZodError)
    }
    for (const wrong of [
      { ...METADATA, tenant: 7 },
      { ...METADATA, schemaVersion: '1' },
      { ...METADATA, schemaVersion: 1.5 },
      { ...METADATA, schemaVersion: 2 ** 53 },
      { ...METADATA, traceparent: null },
      { ...METADATA, workload: false },
      { ...METADATA, workload: null },
      ...[null, 'text', 7, [], true],
    ])
      expect(() => metadataOf(wrong), JSON.stringify(wrong)).to.throw(ZodError)
  })
})
