import { expect } from 'chai'
import { EffectUnknownError, LedgerError, NoAnswerError } from '../../../scripts/client/src/errors.ts'
import { createSender, type RetryOptions, type Token } from '../../../scripts/client/src/retry.ts'
import { type ErrorCode, retryOf } from '../../../src/http/problems/problemCatalogue.ts'
import { rejectionOf } from '../../support/rejection.ts'

type Reply = { readonly status: number; readonly code?: ErrorCode; readonly after?: number | string } | 'lost'
type Seen = { readonly key: string | null; readonly body: unknown; readonly authorization: string | null }

const LOST = new TypeError('fetch failed')

/** A fetch that gives these replies, the last one again and again, on virtual time. */
const scripted = (replies: readonly Reply[], options: Partial<RetryOptions & { readonly token: Token }> = {}) => {
  const seen: Seen[] = []
  const pauses: number[] = []
  let nowMs = 0
  const send: typeof fetch = async (_input, init = {}) => {
    const sent = new Headers(init.headers)
    seen.push({ key: sent.get('idempotency-key'), body: init.body, authorization: sent.get('authorization') })
    const reply = replies[Math.min(seen.length, replies.length) - 1]
    if (reply === undefined || reply === 'lost') throw LOST
    const { status, code, after } = reply
    const headers = {
      ...(code === undefined ? {} : { 'content-type': 'application/problem+json' }),
      ...(after === undefined ? {} : { 'retry-after': String(after) }),
    }
    return new Response(code === undefined ? '{}' : JSON.stringify({ code, retry: retryOf(code) }), { status, headers })
  }
  const sender = createSender(
    { token: 'secret', ...options },
    {
      fetch: send,
      nowMs: () => nowMs,
      sleep: async ms => {
        pauses.push(ms)
        nowMs += ms
      },
      random: () => 1,
    },
  )
  /** Resolves to the status of the last response. */
  const retrying = (url: string, init?: RequestInit): Promise<number> =>
    sender(url, init).then(
      ({ response }) => response.status,
      (error: unknown) => {
        if (error instanceof LedgerError) return error.status
        throw error
      },
    )
  return { retrying, seen, pauses, elapsedMs: () => nowMs }
}

const payment = { method: 'POST', body: '{"amount":1}', headers: { 'Idempotency-Key': 'k1' } }
const keyless = { method: 'POST', body: '{"amount":1}' }

describe('the retries of the client', () => {
  for (const [what, first, init, isRetried] of [
    ['a request without effect', { status: 503, code: 'overloaded' }, keyless, true],
    ['a race that was lost', { status: 409, code: 'concurrent_modification' }, keyless, true],
    ['a payment in progress, with its key', { status: 409, code: 'idempotency_in_progress' }, payment, true],
    ['a payment in progress, without a key', { status: 409, code: 'idempotency_in_progress' }, keyless, false],
    ['an unknown effect, with a key', { status: 504, code: 'deadline_exceeded' }, payment, true],
    ['an unknown effect of a read', { status: 500, code: 'internal_error' }, {}, true],
    ['a rejection', { status: 409, code: 'payment_exceeds_due' }, payment, false],
    ['an expired token', { status: 401, code: 'token_expired' }, payment, false],
    ['an invalid request', { status: 400, code: 'validation_failed' }, payment, false],
    ['a failure of another server, with a key', { status: 502 }, payment, true],
  ] as const)
    it(`${isRetried ? 'repeat' : 'do not repeat'} ${what}`, async () => {
      const { retrying, seen } = scripted([first, { status: 201 }])
      const status = await retrying('/payments', init)
      expect([status, seen.length]).to.deep.equal(isRetried ? [201, 2] : [first.status, 1])
    })

  it('send the same key and body each time', async () => {
    const { retrying, seen } = scripted(['lost', { status: 504, code: 'deadline_exceeded' }, { status: 201 }])
    expect(await retrying('/payments', payment)).to.equal(201)
    expect(seen).to.deep.equal(
      Array.from({ length: 3 }, () => ({ key: 'k1', body: payment.body, authorization: 'Bearer secret' })),
    )
  })

  it('do not repeat a write without a key whose response was lost', async () => {
    const { retrying, seen } = scripted(['lost'])
    const failure = await rejectionOf(retrying('/orders', keyless))
    expect(failure).to.be.instanceOf(EffectUnknownError)
    expect(failure.cause).to.be.instanceOf(NoAnswerError).and.have.property('cause', LOST)
    expect(seen).to.have.lengthOf(1)
  })

  for (const [what, reply] of [
    ['a deadline', { status: 504, code: 'deadline_exceeded' }],
    ['a failure of another server', { status: 502 }],
  ] as const)
    it(`do not repeat a write without a key after ${what}, and say that its effect is unknown`, async () => {
      const { retrying, seen } = scripted([reply])
      const failure = await rejectionOf(retrying('/orders', keyless))
      expect(failure).to.be.instanceOf(EffectUnknownError)
      expect([(failure.cause as LedgerError).status, seen.length]).to.deep.equal([reply.status, 1])
    })

  for (const first of ['lost', { status: 504, code: 'deadline_exceeded' }, { status: 502 }] as const) {
    const title = first === 'lost' ? 'a lost answer' : `a ${first.status}`
    for (const last of [
      { status: 503, code: 'dependency_unavailable' },
      { status: 429, code: 'rate_limited' },
      { status: 401, code: 'token_expired' },
      { status: 412, code: 'precondition_failed' },
      { status: 404, code: 'resource_not_found' },
      { status: 409, code: 'idempotency_in_progress' },
      { status: 409 },
    ] as const)
      it(`say that the effect is unknown when ${title} is followed by ${last.status} ${'code' in last ? last.code : ''}`, async () => {
        const { retrying } = scripted([first, last])
        const failure = await rejectionOf(retrying('/payments', payment))
        expect(failure).to.be.instanceOf(EffectUnknownError)
        const { cause, idempotencyKey } = failure as EffectUnknownError
        expect(idempotencyKey).to.equal('k1')
        expect(cause).to.be.instanceOf(LedgerError).and.include({ status: last.status })
        expect((cause as LedgerError).code).to.equal('code' in last ? last.code : undefined)
      })

    for (const last of [
      { status: 201 },
      { status: 409, code: 'payment_exceeds_due' },
      { status: 422, code: 'idempotency_key_reused' },
    ] as const)
      it(`end with ${last.status}, which tells the effect, after ${title}`, async () => {
        const { retrying } = scripted([first, last])
        expect(await retrying('/payments', payment)).to.equal(last.status)
      })
  }

  it('end with the last response of a read, and of a write that no attempt can have made', async () => {
    const read = scripted(['lost', { status: 504, code: 'deadline_exceeded' }, { status: 401, code: 'token_expired' }])
    expect(await read.retrying('/payments')).to.equal(401)
    const write = scripted([
      { status: 503, code: 'overloaded' },
      { status: 401, code: 'token_expired' },
    ])
    expect(await write.retrying('/payments', payment)).to.equal(401)
  })

  it('ask for the token at each attempt', async () => {
    let tokens = 0
    const options = { token: async () => `token-${++tokens}` }
    const { retrying, seen } = scripted(['lost', { status: 503, code: 'overloaded' }, { status: 201 }], options)
    await retrying('/payments', payment)
    expect(seen.map(({ authorization }) => authorization)).to.deep.equal([
      'Bearer token-1',
      'Bearer token-2',
      'Bearer token-3',
    ])
  })

  it('end with the error of a token, unless an effect is unknown', async () => {
    const refused = new Error('no token')
    const token = (failing: number) => {
      let calls = 0
      return () => (++calls === failing ? Promise.reject(refused) : 'token')
    }
    const first = scripted(['lost'], { token: token(1) })
    expect([await rejectionOf(first.retrying('/payments', payment)), first.seen.length]).to.deep.equal([refused, 0])
    const second = scripted(['lost'], { token: token(2) })
    const failure = await rejectionOf(second.retrying('/payments', payment))
    expect([failure instanceof EffectUnknownError, failure.cause, second.seen.length]).to.deep.equal([true, refused, 1])
  })

  it('do not wait for a token beyond the deadline', async () => {
    const surroundings = { nowMs: () => performance.now(), sleep: async () => undefined, random: () => 1 }
    const hanging = { token: () => new Promise<string>(() => undefined), deadlineMs: 50 }
    const retrying = createSender(hanging, { fetch: async () => new Response(), ...surroundings })
    expect(await rejectionOf(retrying('/payments', payment))).to.have.property('name', 'TimeoutError')
  })

  it('wait for Retry-After, and longer from pause to pause without it', async () => {
    const requested = scripted([{ status: 429, code: 'rate_limited', after: 7 }, { status: 200 }])
    await requested.retrying('/orders')
    expect(requested.pauses[0]).to.be.within(7_000, 8_000)
    const soon = new Date(Date.now() + 9_000).toUTCString()
    const dated = scripted([{ status: 429, code: 'rate_limited', after: soon }, { status: 200 }])
    await dated.retrying('/orders')
    expect(dated.pauses[0]).to.be.within(7_000, 10_000)
    const { retrying, pauses } = scripted([{ status: 503, code: 'overloaded' }], { attemptsMax: 5 })
    await retrying('/orders')
    expect(pauses).to.deep.equal([200, 400, 800, 1_600])
  })

  it('end with the last response after the attempts, and before the deadline', async () => {
    const attempts = scripted([{ status: 503, code: 'overloaded' }])
    expect(await attempts.retrying('/orders')).to.equal(503)
    expect(attempts.seen).to.have.lengthOf(6)
    const late = scripted([{ status: 503, code: 'overloaded', after: 20 }], { deadlineMs: 50_000 })
    await late.retrying('/orders')
    expect(late.seen).to.have.lengthOf(3)
    expect(late.elapsedMs()).to.be.below(50_000)
  })

  it('bound each attempt by the rest of the deadline', async () => {
    const hanging: typeof fetch = (_input, init) =>
      new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    const surroundings = { nowMs: () => performance.now(), sleep: async () => undefined, random: () => 1 }
    const retrying = createSender(
      { token: 'secret', deadlineMs: 50, attemptMs: 600_000 },
      { fetch: hanging, ...surroundings },
    )
    expect(String(await rejectionOf(retrying('/orders')))).to.include('aborted')
  })

  it('read again when the JSON body of a response breaks off', async () => {
    const broken = new ReadableStream({ pull: controller => controller.error(LOST) })
    const headers = { 'content-type': 'application/json' }
    const replies = [new Response(broken, { headers }), new Response('{"items":[]}', { headers })]
    const send: typeof fetch = async () => replies.shift() ?? Response.error()
    const surroundings = { nowMs: () => 0, sleep: async () => undefined, random: () => 1 }
    const retrying = createSender({ token: 'secret' }, { fetch: send, ...surroundings })
    expect((await retrying('/orders')).data).to.deep.equal({ items: [] })
  })

  it('take the guidance of a newer code, and none of a document that is no problem of the ledger', async () => {
    const answers = (document: object) => {
      let requests = 0
      const headers = { 'content-type': 'application/problem+json' }
      const send: typeof fetch = async () =>
        ++requests === 1 ? new Response(JSON.stringify(document), { status: 409, headers }) : new Response()
      const sleep = async () => undefined
      const sent = createSender({ token: 'secret' }, { fetch: send, sleep })('/orders', keyless)
      return sent.then(
        () => requests,
        (error: LedgerError) => error.message,
      )
    }
    expect(await answers({ code: 'new_race', retry: { retryable: true, strategy: 'same_request' } })).to.equal(2)
    expect(await answers({ code: 'overloaded' })).to.match(/^409: an answer without a problem document/)
  })

  it('do not begin when the caller has aborted', async () => {
    const { retrying, seen } = scripted(['lost'])
    const reason = await rejectionOf(retrying('/orders', { signal: AbortSignal.abort() }))
    expect([reason.name, seen.length]).to.deep.equal(['AbortError', 0])
  })
})
