import { expect } from 'chai'
import { createAnswerByKey } from '../../../src/http/response/usedKeys.ts'
import { Problem } from '../../../src/http/problems/problemCatalogue.ts'
import type { AnyRoute, Reply } from '../../../src/http/route.ts'
import { QuotaExceeded } from '../../../src/commands/quotas/byteQuota.ts'
import { Unavailable } from '../../../src/ports.ts'
import { rejectionOf } from '../../support/rejection.ts'

const scope = { tenant: 'acme', subject: 'me', client: 'me', operation: 'create_order' }
const REPLAYED: Reply = { status: 201, headers: { 'Idempotent-Replayed': 'true' } }
const down = new Unavailable('database', { effect: 'none' })

describe('the answer to a request with a key', () => {
  const call = (key: string | undefined, hasEffect = false) =>
    ({ idempotency: key && { scope, key, secret: new Uint8Array() }, ledger: { hasEffect: () => hasEffect } }) as never
  const route = (handler: () => Promise<Reply>, replay: () => Promise<Reply | undefined> = async () => REPLAYED) =>
    ({ handler, replay }) as never as AnyRoute
  const failing = (failure: Error) =>
    route(async () => {
      throw failure
    })

  const denials: Readonly<Record<string, Error>> = {
    'Postgres fails': down,
    'Postgres fails with an unknown effect': new Unavailable('database', { effect: 'unknown' }),
    'the quota of bytes is used up': new QuotaExceeded({ usedBytes: 1, bytesPerDay: 1, resetMs: 1 }),
    'another quota is used up': new Problem('quota_exceeded'),
  }
  for (const [reason, error] of Object.entries(denials)) {
    it(`is that of the first request with the key when ${reason}`, async () => {
      expect(await createAnswerByKey()(failing(error), call('a'))).to.equal(REPLAYED)
    })

    it(`is the refusal for a new key and without a key when ${reason}`, async () => {
      const unused = route(
        () => Promise.reject(error),
        async () => undefined,
      )
      expect(await rejectionOf(createAnswerByKey()(unused, call('a')))).to.equal(error)
      expect(await rejectionOf(createAnswerByKey()(failing(error), call(undefined)))).to.equal(error)
    })
  }

  it('is any other failure, and one after an effect', async () => {
    const lost = new Unavailable('event store', { effect: 'none' })
    for (const error of [new Problem('insufficient_scope'), lost, new Error('a bug')])
      expect(await rejectionOf(createAnswerByKey()(failing(error), call('a')))).to.equal(error)
    expect(await rejectionOf(createAnswerByKey()(failing(down), call('a', true)))).to.equal(down)
  })

  it('waits for a request with the same key that may still have an effect, and for no other', async () => {
    const answerByKey = createAnswerByKey()
    const { promise, resolve } = Promise.withResolvers<Reply>()
    let isDone = false
    const first = answerByKey(
      route(() => promise),
      call('a'),
    )
    const refused = route(
      () => Promise.reject(down),
      async () => (isDone ? REPLAYED : undefined),
    )
    const second = answerByKey(refused, call('a'))
    expect(await rejectionOf(answerByKey(refused, call('b')))).to.equal(down)
    isDone = true
    resolve({ status: 201 })
    expect([await first, await second]).to.deep.equal([{ status: 201 }, REPLAYED])
    isDone = false
    expect(await rejectionOf(answerByKey(refused, call('a')))).to.equal(down)
  })

  it('does not wait for a request that waits for it', async () => {
    const answerByKey = createAnswerByKey()
    const { promise, reject } = Promise.withResolvers<Reply>()
    const refused = () =>
      answerByKey(
        route(() => promise),
        call('a'),
      )
    const both = [refused(), refused()]
    reject(down)
    expect(await Promise.all(both)).to.deep.equal([REPLAYED, REPLAYED])
  })
})
