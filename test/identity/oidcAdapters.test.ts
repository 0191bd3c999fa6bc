import { expect } from 'chai'
import type { Adapter } from 'oidc-provider'
import { createAdapters, grantName } from '../../src/embedded/issuer/oidcAdapters.ts'
import { createProvider } from '../../src/embedded/issuer/provider.ts'
import type { SigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { generateTestKey } from '../support/tokens.ts'

const RECORDS_MAX = 10_000

const errorOf = (work: Promise<unknown> | undefined | void): Promise<string> =>
  Promise.resolve(work).then(
    () => 'no error',
    (error: Error) => error.message,
  )

describe('identity: the records of the issuer', () => {
  let nowMs: number
  let revoked: string[]
  let adapters: (kind: string) => Adapter

  beforeEach(() => {
    nowMs = 0
    revoked = []
    const revoke = async (name: string): Promise<void> => void revoked.push(name)
    adapters = createAdapters({ clients: async () => [], resource: 'http://localhost:8080', revoke, now: () => nowMs })
  })

  it('are returned until they are replaced or removed, and apart for each kind', async () => {
    const tokens = adapters('RefreshToken')
    await tokens.upsert('one', { scope: 'a' }, 60)
    expect(await tokens.find('one')).to.deep.equal({ scope: 'a' })
    expect(await adapters('AuthorizationCode').find('one')).to.equal(undefined)
    await tokens.upsert('one', { scope: 'b' }, 60)
    expect(await tokens.find('one')).to.deep.equal({ scope: 'b' })
    await tokens.destroy('one')
    expect(await tokens.find('one')).to.equal(undefined)
  })

  it('are consumed by one of twenty concurrent requests; the others revoke the grant', async () => {
    const codes = adapters('AuthorizationCode')
    await codes.upsert('code', { grantId: 'g' }, 60)
    await adapters('Grant').upsert('g', {}, 60)
    const errors = await Promise.all(Array.from({ length: 20 }, () => errorOf(codes.consume('code'))))
    expect(errors.filter(error => error === 'no error')).to.have.length(1)
    expect(errors.filter(error => error === 'invalid_grant')).to.have.length(19)
    expect(new Set(revoked)).to.deep.equal(new Set([grantName('g')]))
    expect([await codes.find('code'), await adapters('Grant').find('g')]).to.deep.equal([undefined, undefined])
  })

  it('of one kind and grant are removed together', async () => {
    const [codes, tokens] = [adapters('AuthorizationCode'), adapters('RefreshToken')]
    for (const id of ['one', 'two']) await tokens.upsert(id, { grantId: 'g' }, 60)
    await tokens.upsert('other', { grantId: 'h' }, 60)
    await codes.upsert('one', { grantId: 'g' }, 60)
    await tokens.revokeByGrantId('g')
    const match = await Promise.all([tokens.find('one'), tokens.find('two'), tokens.find('other'), codes.find('one')])
    expect(match).to.deep.equal([undefined, undefined, { grantId: 'h' }, { grantId: 'g' }])
    expect(revoked).to.deep.equal([grantName('g')])
  })

  it('stay when the API cannot be told of a revocation', async () => {
    const revoke = (): Promise<never> => Promise.reject(new Error('planted'))
    const tokens = createAdapters({ clients: async () => [], resource: 'http://localhost:8080', revoke })(
      'RefreshToken',
    )
    await tokens.upsert('one', { grantId: 'g' }, 60)
    expect(await errorOf(tokens.revokeByGrantId('g'))).to.equal('planted')
    expect(await tokens.find('one')).to.deep.equal({ grantId: 'g' })
  })

  it('let a session be found by both of its names, and an assertion be used once', async () => {
    const [sessions, replays] = [adapters('Session'), adapters('ReplayDetection')]
    await sessions.upsert('id', { uid: 'uid', accountId: 'ann' }, 60)
    expect(await sessions.findByUid('uid')).to.include({ accountId: 'ann' })
    expect(await sessions.findByUid('id')).to.equal(undefined)
    await replays.upsert('jti', {}, 60)
    expect(await errorOf(replays.upsert('jti', {}, 60))).to.equal('invalid_client')
    nowMs += 60_000
    expect(await errorOf(replays.upsert('jti', {}, 60))).to.equal('no error')
  })

  it('are evicted in the order of their arrival beyond ten thousand', async () => {
    const tokens = adapters('RefreshToken')
    for (let n = 0; n <= RECORDS_MAX; n++) await tokens.upsert(`${n}`, { scope: `${n}` }, 60)
    expect([await tokens.find('0'), await tokens.find('1')]).to.deep.equal([undefined, { scope: '1' }])
  })

  it('of a code live for 60 s', async () => {
    const { kid, privateKey } = await generateTestKey()
    const jwk = privateKey.export({ format: 'jwk' })
    const provider = createProvider({
      ...{ issuer: 'http://localhost/oauth', audience: 'ledger', resource: 'http://localhost', cookieKey: 'key' },
      key: { ...jwk, alg: 'ES256', use: 'sig', kid } as SigningKey,
      adapter: adapters,
      users: async () => [],
    })
    const code = await new provider.AuthorizationCode({ accountId: 'ann', grantId: 'g' } as never).save()
    nowMs += 59_000
    expect(await provider.AuthorizationCode.find(code)).to.include({ accountId: 'ann' })
    nowMs += 1_000
    expect(await provider.AuthorizationCode.find(code)).to.equal(undefined)
  })
})
