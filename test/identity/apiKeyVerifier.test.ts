import { expect } from 'chai'
import { openApiKeyVerifier } from '../../src/identity/apiKeyVerifier.ts'
import { createApiKeySecrets } from '../../src/identity/apiKeySecrets.ts'
import type { IssuedKey } from '../../src/identity/apiKeyLookup.ts'
import type { KeyFault } from '../../src/identity/credentialRefusals.ts'
import { Unavailable } from '../../src/ports.ts'
import { apiKey, type ApiKeyEvent } from '../../streams/apiKey/index.ts'
import type { ApiKeyId } from '../../streams/ids.ts'
import { stateAfter } from '../support/scenario.ts'
import { id } from '../streams/samples.ts'

const BEGIN = Date.parse('2026-01-01T00:00:00.000Z')
const DAY_MS = 24 * 60 * 60 * 1000
const CACHED_MS = 2_000
const CONCURRENT_READINGS_MAX = 16
const secrets = createApiKeySecrets('dev', 'a pepper for the tests of the verifier')
const ID = id('key')

const expiresAfter = (days: number): string => new Date(BEGIN + days * DAY_MS).toISOString()
const issued = (scopes: readonly string[] = ['orders:read'], quota: object | null = null): ApiKeyEvent =>
  ({
    type: 'ApiKeyIssued',
    data: {
      name: 'nightly',
      scopes,
      quota,
      lifetime_days: 30,
      nonce: 'n1',
      hash: secrets.hashOf(ID, 'n1'),
      expires_at: expiresAfter(30),
      metadata: {},
      claim: null,
    },
  }) as ApiKeyEvent
const rotated = (nonce: string, untilDays: number): ApiKeyEvent => ({
  type: 'ApiKeyRotated',
  data: {
    nonce,
    hash: secrets.hashOf(ID, nonce),
    expires_at: expiresAfter(60),
    previous_until: expiresAfter(untilDays),
    claim: null,
  },
})
const revoked: ApiKeyEvent = { type: 'ApiKeyRevoked', data: {} }

/** A verifier of keys that the test provides, with clocks that the test advances. */
const openFixtures = () => {
  const keys = new Map<string, readonly ApiKeyEvent[]>([[ID, [issued()]]])
  const readings: string[] = []
  let elapsedMs = 0
  let isUnavailable = false
  let unblocked: Promise<void> = Promise.resolve()
  const load = async (of: ApiKeyId): Promise<IssuedKey | undefined> => {
    readings.push(of)
    await unblocked
    if (isUnavailable) throw new Unavailable('event store', { effect: 'none', cause: new Error('planted') })
    const events = keys.get(of)
    return events && { tenant: 'acme', subject: 'clerk', key: stateAfter(apiKey.decider, events) }
  }
  const verifier = openApiKeyVerifier({
    secrets,
    load,
    now: () => BEGIN + elapsedMs,
    monotonicNow: () => elapsedMs,
  })
  return {
    readings,
    verify: verifier.verify,
    faultOf: async (key: string): Promise<KeyFault | undefined> => {
      const verified = await verifier.verify(key)
      return 'fault' in verified ? verified.fault : undefined
    },
    write: (...events: readonly ApiKeyEvent[]) => void keys.set(ID, events),
    pass: (timeMs: number) => void (elapsedMs += timeMs),
    setUnavailable: (value: boolean) => void (isUnavailable = value),
    /** Blocks the readings of keys until the returned function is called. */
    block: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      unblocked = promise
      return resolve
    },
  }
}

const key = secrets.keyOf(ID, 'n1')
/** A forged key with a valid checksum. */
const forged = (n: number): string => secrets.keyOf(id('key', n), 'forged')

describe('identity: API keys', () => {
  it('authenticate their creator, with the key as client, for reading', async () => {
    const fixtures = openFixtures()
    fixtures.write(
      issued(['payments:read', 'orders:write', 'orders:read', 'nonsense:read'], { requests: 5, window_seconds: 60 }),
    )
    expect(await fixtures.verify(key)).to.deep.equal({
      tenant: 'acme',
      subject: 'clerk',
      client: ID,
      scopes: new Set(['orders:read', 'payments:read']),
      kind: 'api_key',
      quota: { requests: 5, windowSeconds: 60 },
    })
  })

  it('have no quota by default', async () => expect(await openFixtures().verify(key)).to.not.have.property('quota'))

  it('are refused without a lookup when malformed', async () => {
    const fixtures = openFixtures()
    const live = createApiKeySecrets('live', 'a pepper for the tests of the verifier').keyOf(ID, 'n1')
    const last = key.endsWith('0') ? '1' : '0'
    expect(await fixtures.verify('lk_none')).to.deep.equal({ refused: 'api_key_invalid', fault: 'key_malformed' })
    expect(await fixtures.faultOf(`${key.slice(0, -1)}${last}`)).to.equal('key_checksum_wrong')
    expect(await fixtures.faultOf(live)).to.equal('key_environment_wrong')
    expect(fixtures.readings).to.deep.equal([])
  })

  it('are refused for the secret alone, for the id alone, and when they are revoked', async () => {
    const fixtures = openFixtures()
    expect(await fixtures.faultOf(secrets.keyOf(ID, 'another'))).to.equal('key_secret_wrong')
    expect(await fixtures.faultOf(forged(2))).to.equal('key_unissued')
    fixtures.write(issued(), revoked)
    fixtures.pass(CACHED_MS)
    expect(await fixtures.verify(key)).to.deep.equal({ refused: 'api_key_invalid', fault: 'key_revoked' })
  })

  it('expire to the millisecond', async () => {
    const fixtures = openFixtures()
    fixtures.pass(30 * DAY_MS - 1)
    expect(await fixtures.faultOf(key)).to.equal(undefined)
    fixtures.pass(1)
    expect(await fixtures.faultOf(key)).to.equal('key_expired')
  })

  it('have two secrets while one replaces the other, and never three', async () => {
    const fixtures = openFixtures()
    const [second, third] = [secrets.keyOf(ID, 'n2'), secrets.keyOf(ID, 'n3')]
    fixtures.write(issued(), rotated('n2', 1))
    expect([await fixtures.faultOf(key), await fixtures.faultOf(second)]).to.deep.equal([undefined, undefined])
    fixtures.pass(DAY_MS)
    expect([await fixtures.faultOf(key), await fixtures.faultOf(second)]).to.deep.equal(['key_rotated_out', undefined])
    fixtures.write(issued(), rotated('n2', 5), rotated('n3', 5))
    fixtures.pass(CACHED_MS)
    const faults = [await fixtures.faultOf(key), await fixtures.faultOf(second), await fixtures.faultOf(third)]
    expect(faults).to.deep.equal(['key_secret_wrong', undefined, undefined])
  })

  it('are accepted with a new secret at once, also when the previous one is cached', async () => {
    const fixtures = openFixtures()
    await fixtures.verify(key)
    fixtures.pass(1)
    fixtures.write(issued(), rotated('n2', 1))
    expect(await fixtures.faultOf(secrets.keyOf(ID, 'n2'))).to.equal(undefined)
  })

  it('cause one or two readings of the store for any number of concurrent guesses', async () => {
    const fixtures = openFixtures()
    await fixtures.verify(key)
    fixtures.pass(1)
    const guesses = Array.from({ length: 100 }, (_, n) => fixtures.faultOf(secrets.keyOf(ID, `guess ${n}`)))
    expect(new Set(await Promise.all(guesses))).to.deep.equal(new Set(['key_secret_wrong']))
    expect(fixtures.readings.length).to.be.within(2, 3)
  })

  it('are read every two seconds at most, so that a revoked one is refused after that time', async () => {
    const fixtures = openFixtures()
    await Promise.all(Array.from({ length: 50 }, () => fixtures.verify(key)))
    expect(fixtures.readings).to.have.length(1)
    fixtures.write(issued(), revoked)
    fixtures.pass(CACHED_MS - 1)
    expect(await fixtures.faultOf(key)).to.equal(undefined)
    fixtures.pass(1)
    expect(await fixtures.faultOf(key)).to.equal('key_revoked')
    expect(fixtures.readings).to.have.length(2)
  })

  it('are refused as unavailable when the store does not answer', async () => {
    const fixtures = openFixtures()
    await fixtures.verify(key)
    fixtures.setUnavailable(true)
    expect(await fixtures.faultOf(key), 'while it is cached').to.equal(undefined)
    fixtures.pass(CACHED_MS)
    expect(await fixtures.verify(key)).to.deep.equal({ refused: 'keys_unavailable', fault: 'key_unreadable' })
    fixtures.setUnavailable(false)
    expect(await fixtures.faultOf(key), 'at once when the store answers again').to.equal(undefined)
  })

  it('that were never issued are cached too', async () => {
    const fixtures = openFixtures()
    for (let times = 0; times < 10; times += 1) await fixtures.verify(forged(2))
    expect(fixtures.readings).to.have.length(1)
    fixtures.pass(CACHED_MS)
    await fixtures.verify(forged(2))
    expect(fixtures.readings).to.have.length(2)
  })

  it('that are invented have a concurrency limit of their own, so that known ones are not delayed', async () => {
    const fixtures = openFixtures()
    await fixtures.verify(key)
    fixtures.pass(CACHED_MS)
    const unblock = fixtures.block()
    const unissued = Array.from({ length: 200 }, (_, n) => fixtures.faultOf(forged(n + 2)))
    const known = fixtures.faultOf(key)
    await new Promise(resolve => setImmediate(resolve))
    expect(fixtures.readings.filter(readings => readings !== ID)).to.have.length(CONCURRENT_READINGS_MAX)
    expect(
      fixtures.readings.filter(readings => readings === ID),
      'readings of the known key',
    ).to.have.length(2)
    unblock()
    expect(await known).to.equal(undefined)
    expect(new Set(await Promise.all(unissued))).to.deep.equal(new Set(['key_unissued']))
    expect(fixtures.readings).to.have.length(202)
  })
})
