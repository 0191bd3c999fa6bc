import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openTokenVerifier, type TokenVerifier } from '../../src/identity/tokenVerifier.ts'
import { createManualClock } from '../support/manualClock.ts'
import { claimsFor, generateTestKey, signToken, TEST_AUDIENCE, type TestKey } from '../support/tokens.ts'

const ISSUER = 'https://issuer.test/oauth'

const STARTED_AT_MS = 1_800_000_000_000

/** An issuer in memory, and a clock that the test advances. */
const openIssuer = async (initial: readonly TestKey[], down = false) => {
  const clock = createManualClock()
  const state = { published: initial, down, hung: false, fetches: 0, failures: 0 }
  const now = (): number => STARTED_AT_MS + clock.monotonicMs()
  const verifier: TokenVerifier = await openTokenVerifier({
    issuer: ISSUER,
    audience: TEST_AUDIENCE,
    now,
    monotonicNow: clock.monotonicMs,
    sleep: clock.sleep,
    fetchJwks: async () => {
      state.fetches += 1
      if (state.hung) await new Promise(() => {})
      if (state.down) throw new Error('connection refused')
      return { keys: state.published.map(({ publicJwk }) => publicJwk) }
    },
    onKeysUnreachable: () => {
      state.failures += 1
    },
  })
  const token = (key: TestKey): string => signToken(key, claimsFor(ISSUER, {}, now()))
  const outcome = async (text: string): Promise<string> => {
    const verified = await verifier.verify(text)
    return 'refused' in verified ? verified.fault : 'ok'
  }
  const pass = async (seconds: number): Promise<void> => {
    await clock.pass(seconds * 1000)
    // A background reading, which needs no timer, ends before the next request.
    await sleep(1)
  }
  return { state, now, verifier, token, outcome, pass }
}

describe('identity: a verifier whose issuer rotates its keys', () => {
  let first: TestKey
  let second: TestKey
  let unpublished: TestKey

  before(async () => {
    ;[first, second, unpublished] = await Promise.all([generateTestKey(), generateTestKey('RS256'), generateTestKey()])
  })

  it('accepts tokens of both keys while both are published', async () => {
    const { state, token, outcome } = await openIssuer([first])
    const old = token(first)
    expect(await outcome(old)).to.equal('ok')
    state.published = [first, second]
    expect(await outcome(token(second))).to.equal('ok')
    expect(await outcome(old)).to.equal('ok')
    expect(await outcome(token(first))).to.equal('ok')
  })

  it('refuses tokens of a removed key within 60 s, known or not, under steady use', async () => {
    const { state, token, outcome, pass } = await openIssuer([first, second])
    const known = token(first)
    expect(await outcome(known)).to.equal('ok')
    state.published = [second]
    for (let elapsed = 0; elapsed < 60; elapsed += 1) {
      await outcome(known)
      await pass(1)
    }
    expect(await outcome(known)).to.equal('key_unknown')
    expect(await outcome(token(first))).to.equal('key_unknown')
    expect(await outcome(token(second))).to.equal('ok')
  })

  it('refuses a known token of a removed key after a minute without any request', async () => {
    const { state, token, outcome, pass } = await openIssuer([first, second])
    const known = token(first)
    expect(await outcome(known)).to.equal('ok')
    state.published = [second]
    await pass(60)
    expect(await outcome(known)).to.equal('key_unknown')
  })

  it('refuses every token once the issuer publishes no key', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    const known = token(first)
    expect(await outcome(known)).to.equal('ok')
    state.published = []
    await pass(60)
    expect(await outcome(known)).to.equal('key_unknown')
  })

  it('refuses a known token whose kid now names another key', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    const known = token(first)
    expect(await outcome(known)).to.equal('ok')
    state.published = [await generateTestKey('ES256', { kid: first.kid })]
    await pass(60)
    expect(await outcome(known)).to.equal('signature_invalid')
  })

  it('reads the keys once for many tokens with unknown kids, and again 30 s later', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    const forged = (kid: string): string => token({ ...unpublished, kid })
    expect(state.fetches).to.equal(1)
    await Promise.all(Array.from({ length: 50 }, (_, n) => outcome(forged(`at-once-${n}`))))
    for (let n = 0; n < 50; n += 1) expect(await outcome(forged(`after-${n}`))).to.equal('key_unknown')
    expect(state.fetches).to.equal(2)
    await pass(29)
    await outcome(forged('later'))
    expect(state.fetches).to.equal(2)
    await pass(1)
    await outcome(forged('later'))
    expect(state.fetches).to.equal(3)
  })

  it('knows a new key 30 s after its first use, whatever kids strangers invent and whoever asks then', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    await outcome(token({ ...unpublished, kid: 'invented' }))
    state.published = [first, second]
    expect(await outcome(token(second)), 'it waits for nothing').to.equal('key_unknown')
    expect(state.fetches).to.equal(2)
    await pass(30)
    expect(state.fetches, 'without a request at that time').to.equal(3)
    expect(await outcome(token(second))).to.equal('ok')
    expect(state.fetches).to.equal(3)
  })

  it('reads the keys no more than once in 30 s, however many kids strangers invent', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    for (let elapsed = 0; elapsed < 300; elapsed += 1) {
      await Promise.all([0, 1, 2].map(n => outcome(token({ ...unpublished, kid: `invented-${elapsed}-${n}` }))))
      await pass(1)
    }
    expect(state.fetches, 'the first, and one at each pause that ended').to.be.at.most(2 + 300 / 30)
  })

  it('tries again soon after a reading for an unknown kid has failed, and does not try for ever', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    state.published = [first, second]
    state.down = true
    expect(await outcome(token(second))).to.equal('keys_unreachable')
    await pass(3)
    expect(state.fetches, 'the first, the one that failed, and one more').to.equal(3)
    state.down = false
    await pass(5)
    expect(await outcome(token(second))).to.equal('ok')
    state.down = true
    await outcome(token({ ...unpublished, kid: 'invented' }))
    await pass(600)
    const { fetches } = state
    await pass(600)
    expect(state.fetches, 'nobody asks any more').to.equal(fetches)
  })

  it('does not read the keys for a token that is wrong in another way', async () => {
    const { state, now, outcome } = await openIssuer([first])
    const odd = signToken(unpublished, claimsFor(ISSUER, { aud: 'other' }, now()))
    expect(await outcome(odd)).to.equal('aud_mismatch')
    expect(state.fetches).to.equal(1)
  })

  it('finds each new key at once when the issuer rotates every 2 s', async () => {
    const keys = await Promise.all(Array.from({ length: 12 }, async () => await generateTestKey()))
    const { state, token, outcome, pass } = await openIssuer(keys.slice(0, 1))
    let previous: string | undefined
    for (const [n, key] of keys.entries()) {
      state.published = keys.slice(Math.max(0, n - 1), n + 1)
      const current = token(key)
      for (let request = 0; request < 5; request += 1) expect(await outcome(current), `key ${n}`).to.equal('ok')
      if (previous) expect(await outcome(previous), `key before ${n}`).to.equal('ok')
      previous = current
      await pass(2)
    }
    expect(state.fetches).to.be.at.most(keys.length + 1)
  })

  it('uses the last keys while the issuer is down, for 15 minutes', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    state.down = true
    for (let minute = 0; minute < 14; minute += 1) {
      await pass(60)
      expect(await outcome(token(first)), `minute ${minute}`).to.equal('ok')
    }
    await pass(60)
    await pass(1)
    expect(await outcome(token(first))).to.equal('keys_unreachable')
    state.down = false
    await pass(2)
    expect(await outcome(token(first))).to.equal('ok')
    expect(state.failures).to.be.above(1)
  })

  it('answers keys_unavailable, not token_invalid, for a new key while the issuer is down', async () => {
    const { state, verifier, token, outcome } = await openIssuer([first])
    state.down = true
    expect(await verifier.verify(token(second))).to.deep.equal({
      refused: 'keys_unavailable',
      fault: 'keys_unreachable',
    })
    expect(await outcome(token(first))).to.equal('ok')
  })

  it('opens while the issuer is down, and works as soon as it is up', async () => {
    const { state, verifier, token, pass } = await openIssuer([first], true)
    expect(await verifier.verify(token(first))).to.have.property('refused', 'keys_unavailable')
    state.down = false
    await pass(2)
    expect(await verifier.verify(token(first))).to.have.property('subject', 'client-1')
  })

  it('does not wait for an unreachable issuer with every request', async () => {
    const { state, token, outcome, pass } = await openIssuer([first])
    state.down = true
    await pass(60)
    for (let n = 0; n < 100; n += 1) await outcome(token(first))
    expect(state.fetches).to.equal(2)
    state.hung = true
    await pass(5)
    expect(await outcome(token(first))).to.equal('ok')
    expect(state.fetches).to.equal(3)
  })
})
