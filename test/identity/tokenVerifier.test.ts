import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openTokenVerifier, type TokenVerifierOptions } from '../../src/identity/tokenVerifier.ts'
import { eventually } from '../support/eventually.ts'
import { readConfig } from '../../src/settings/config.ts'
import { rejectionOf } from '../support/rejection.ts'
import {
  claimsFor,
  generateTestKey,
  signToken,
  startTestIssuer,
  TEST_AUDIENCE,
  type TestIssuer,
  type TestKey,
} from '../support/tokens.ts'

const VERIFICATIONS = 150
const ROTATION_EVERY_MS = 2_000

describe('identity: the token verifier', () => {
  let key: TestKey
  let issuer: TestIssuer

  beforeEach(async () => {
    key = await generateTestKey()
    issuer = await startTestIssuer(key)
  })

  afterEach(async () => await issuer.close())

  const open = async (changes: Partial<TokenVerifierOptions> = {}) =>
    await openTokenVerifier({ issuer: issuer.issuer, audience: TEST_AUDIENCE, ...changes })

  it('refuses to open without issuer, audience or keys, and names the setting', async () => {
    expect((await rejectionOf(open({ issuer: '' }))).message).to.contain('OIDC_ISSUER')
    expect((await rejectionOf(open({ issuer: ' ' }))).message).to.contain('OIDC_ISSUER')
    expect((await rejectionOf(open({ issuer: 'issuer' }))).message).to.contain('OIDC_ISSUER')
    expect((await rejectionOf(open({ audience: '' }))).message).to.contain('OIDC_AUDIENCE')
    issuer.publish()
    expect((await rejectionOf(open())).message).to.contain('OIDC_ISSUER')
    issuer.publish(await generateTestKey('ES384'))
    expect((await rejectionOf(open())).message).to.contain('OIDC_ISSUER')
  })

  const kindOf = async (claims: object, changes: Partial<TokenVerifierOptions> = {}): Promise<unknown> => {
    const verifier = await open(changes)
    const verified = await verifier.verify(signToken(key, claimsFor(issuer.issuer, { ...claims })))
    verifier.close()
    return 'refused' in verified ? verified.fault : verified.kind
  }
  const AUTH0 = { workloadClaim: { name: 'gty', value: 'client-credentials' } }

  it('recognizes a workload by its subject, unless a claim is configured, which decides alone', async () => {
    const named = { sub: 'client-1', client_id: 'client-1' }
    const service = { sub: 'client-1@clients', client_id: 'client-1', gty: 'client-credentials' }
    expect([await kindOf(named), await kindOf(service)]).to.deep.equal(['workload', 'user'])
    expect([await kindOf(named, AUTH0), await kindOf(service, AUTH0)]).to.deep.equal(['user', 'workload'])
  })

  it('reads the claim from its setting, which belongs to an outside issuer', () => {
    const outside = { OIDC_ISSUER: 'https://issuer.test', OIDC_AUDIENCE: 'ledger' }
    const read = (claim: string, more = {}) => readConfig({ ...more, OIDC_WORKLOAD_CLAIM: claim }).workloadClaim
    expect(read('gty=client-credentials', outside)).to.deep.equal(AUTH0.workloadClaim)
    expect(read('a=b=c', outside)).to.deep.equal({ name: 'a', value: 'b=c' })
    for (const wrong of ['gty', '=x', 'gty=']) expect(() => read(wrong, outside)).to.throw('OIDC_WORKLOAD_CLAIM')
    expect(() => read('gty=client-credentials')).to.throw('OIDC_ISSUER is not')
  })

  it('takes no other value or type of the configured claim for a workload', async () => {
    for (const gty of ['password', '', ['client-credentials'], true, null, undefined])
      expect(await kindOf({ gty }, AUTH0), JSON.stringify(gty)).to.equal('user')
    const inherited = { workloadClaim: { name: 'constructor', value: 'x' } }
    expect(await kindOf({}, inherited)).to.equal('user')
  })

  it('gives a workload by the configured claim the lifetime of workloads', async () => {
    const iat = Math.floor(Date.now() / 1000)
    const long = { iat, exp: iat + 900 }
    expect(await kindOf(long, AUTH0)).to.equal('user')
    expect(await kindOf({ ...long, gty: 'client-credentials' }, AUTH0)).to.equal('lifetime_not_allowed')
  })

  it('reads the keys of an issuer over HTTP, by its metadata', async () => {
    const verifier = await open()
    expect(await verifier.verify(signToken(key, claimsFor(issuer.issuer)))).to.have.property('tenant', 'acme')
    expect(issuer.fetches()).to.equal(1)
    verifier.close()
  })

  it('refuses the keys of an issuer whose metadata names another one', async () => {
    const elsewhere = issuer.issuer.replace('127.0.0.1', 'localhost')
    const faults: unknown[] = []
    const verifier = await open({ issuer: elsewhere, onKeysUnreachable: fault => faults.push(fault) })
    expect(await verifier.verify(signToken(key, claimsFor(elsewhere)))).to.have.property('refused', 'keys_unavailable')
    expect(faults).to.have.length.above(0)
    verifier.close()
  })

  it('refuses a cached token as expired after its expiry and the leeway', async () => {
    let nowMs = Date.now()
    const verifier = await open({ now: () => nowMs })
    const token = signToken(key, claimsFor(issuer.issuer, {}, nowMs))
    expect(await verifier.verify(token)).to.have.property('subject')
    nowMs += 329_000
    expect(await verifier.verify(token)).to.have.property('subject')
    nowMs += 2000
    expect(await verifier.verify(token)).to.have.property('refused', 'token_expired')
    verifier.close()
  })

  it('gives no false refusal over real HTTP while the issuer rotates its keys', async () => {
    let nowMs = 0
    const verifier = await open({ monotonicNow: () => nowMs })
    const outcomes = new Map<string, number>()
    const state = { current: key, rotating: true }
    const verifySteadily = async (): Promise<void> => {
      while (state.rotating) {
        const verified = await verifier.verify(signToken(state.current, claimsFor(issuer.issuer)))
        const outcome = 'refused' in verified ? verified.fault : 'ok'
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        await sleep(1)
      }
    }
    const countOf = (): number => [...outcomes.values()].reduce((sum, count) => sum + count, 0)
    const verifications = async (count: number): Promise<void> => {
      const before = countOf()
      await eventually(async () => countOf() >= before + count)
    }
    const steady = [verifySteadily(), verifySteadily(), verifySteadily()]
    for (let rotation = 0; rotation < 3; rotation += 1) {
      await verifications(VERIFICATIONS)
      nowMs += ROTATION_EVERY_MS
      const next = await generateTestKey(rotation === 1 ? 'RS256' : 'ES256')
      issuer.publish(state.current, next)
      state.current = next
    }
    await verifications(VERIFICATIONS)
    state.rotating = false
    await Promise.all(steady)
    expect([...outcomes.keys()]).to.deep.equal(['ok'])
    expect(issuer.fetches()).to.equal(4)
    verifier.close()
  })
})
