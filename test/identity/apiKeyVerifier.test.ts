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
const BELIEVED_MS = 2_000
const AT_ONCE_MAX = 16
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
const openBench = () => {
  const keys = new Map<string, readonly ApiKeyEvent[]>([[ID, [issued()]]])
  const asked: string[] = []
  let elapsedMs = 0
  let isAway = false
  let gate: Promise<void> = Promise.resolve()
  const load = async (of: ApiKeyId): Promise<IssuedKey | undefined> => {
    asked.push(of)
    await gate
    if (isAway) throw new Unavailable('event store', 'none', new Error('planted'))
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
    asked,
    verify: verifier.verify,
    faultOf: async (key: string): Promise<KeyFault | undefined> => {
      const verified = await verifier.verify(key)
      return 'fault' in verified ? verified.fault : undefined
    },
    write: (...events: readonly ApiKeyEvent[]) => void keys.set(ID, events),
    pass: (timeMs: number) => void (elapsedMs += timeMs),
    setAway: (away: boolean) => void (isAway = away),
    holdBack: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return resolve
    },
  }
}

const key = secrets.keyOf(ID, 'n1')
/** A forged key with a valid checksum. */
const madeUp = (n: number): string => secrets.keyOf(id('key', n), 'made up')

describe('identity: API keys', () => {
  it('authenticate their creator, with the key as client, for reading', async () => {
    const bench = openBench()
    bench.write(
      issued(['payments:read', 'orders:write', 'orders:read', 'nonsense:read'], { requests: 5, window_seconds: 60 }),
    )
    expect(await bench.verify(key)).to.deep.equal({
      tenant: 'acme',
      subject: 'clerk',
      client: ID,
      scopes: new Set(['orders:read', 'payments:read']),
      kind: 'api_key',
      quota: { requests: 5, windowSeconds: 60 },
    })
  })

  it('have no quota by default', async () => expect(await openBench().verify(key)).to.not.have.property('quota'))

  it('are refused without a lookup when malformed', async () => {
    const bench = openBench()
    const live = createApiKeySecrets('live', 'a pepper for the tests of the verifier').keyOf(ID, 'n1')
    const last = key.endsWith('0') ? '1' : '0'
    expect(await bench.verify('lk_none')).to.deep.equal({ refused: 'api_key_invalid', fault: 'key_malformed' })
    expect(await bench.faultOf(`${key.slice(0, -1)}${last}`)).to.equal('key_checksum_wrong')
    expect(await bench.faultOf(live)).to.equal('key_environment_wrong')
    expect(bench.asked).to.deep.equal([])
  })

  it('are refused for the secret alone, for the id alone, and when they are revoked', async () => {
    const bench = openBench()
    expect(await bench.faultOf(secrets.keyOf(ID, 'another'))).to.equal('key_secret_wrong')
    expect(await bench.faultOf(madeUp(2))).to.equal('key_unissued')
    bench.write(issued(), revoked)
    bench.pass(BELIEVED_MS)
    expect(await bench.verify(key)).to.deep.equal({ refused: 'api_key_invalid', fault: 'key_revoked' })
  })

  it('end when their time is over, to the millisecond', async () => {
    const bench = openBench()
    bench.pass(30 * DAY_MS - 1)
    expect(await bench.faultOf(key)).to.equal(undefined)
    bench.pass(1)
    expect(await bench.faultOf(key)).to.equal('key_expired')
  })

  it('have two secrets while one replaces the other, and never three', async () => {
    const bench = openBench()
    const [second, third] = [secrets.keyOf(ID, 'n2'), secrets.keyOf(ID, 'n3')]
    bench.write(issued(), rotated('n2', 1))
    expect([await bench.faultOf(key), await bench.faultOf(second)]).to.deep.equal([undefined, undefined])
    bench.pass(DAY_MS)
    expect([await bench.faultOf(key), await bench.faultOf(second)]).to.deep.equal(['key_rotated_out', undefined])
    bench.write(issued(), rotated('n2', 5), rotated('n3', 5))
    bench.pass(BELIEVED_MS)
    const faults = [await bench.faultOf(key), await bench.faultOf(second), await bench.faultOf(third)]
    expect(faults).to.deep.equal(['key_secret_wrong', undefined, undefined])
  })

  it('accept a new secret at once, whatever is cached', async () => {
    const bench = openBench()
    await bench.verify(key)
    bench.pass(1)
    bench.write(issued(), rotated('n2', 1))
    expect(await bench.faultOf(secrets.keyOf(ID, 'n2'))).to.equal(undefined)
  })

  it('cause two readings of the store for any number of concurrent guesses', async () => {
    const bench = openBench()
    await bench.verify(key)
    bench.pass(1)
    const guesses = Array.from({ length: 100 }, (_, n) => bench.faultOf(secrets.keyOf(ID, `guess ${n}`)))
    expect(new Set(await Promise.all(guesses))).to.deep.equal(new Set(['key_secret_wrong']))
    expect(bench.asked.length).to.be.within(2, 3)
  })

  it('are read every two seconds at most; a revoked one is refused after that', async () => {
    const bench = openBench()
    await Promise.all(Array.from({ length: 50 }, () => bench.verify(key)))
    expect(bench.asked).to.have.length(1)
    bench.write(issued(), revoked)
    bench.pass(BELIEVED_MS - 1)
    expect(await bench.faultOf(key)).to.equal(undefined)
    bench.pass(1)
    expect(await bench.faultOf(key)).to.equal('key_revoked')
    expect(bench.asked).to.have.length(2)
  })

  it('are refused as unavailable when the store does not answer', async () => {
    const bench = openBench()
    await bench.verify(key)
    bench.setAway(true)
    expect(await bench.faultOf(key), 'as long as it is remembered').to.equal(undefined)
    bench.pass(BELIEVED_MS)
    expect(await bench.verify(key)).to.deep.equal({ refused: 'keys_unavailable', fault: 'key_unreadable' })
    bench.setAway(false)
    expect(await bench.faultOf(key), 'at once when it does again').to.equal(undefined)
  })

  it('that were never issued are cached too', async () => {
    const bench = openBench()
    for (let times = 0; times < 10; times += 1) await bench.verify(madeUp(2))
    expect(bench.asked).to.have.length(1)
    bench.pass(BELIEVED_MS)
    await bench.verify(madeUp(2))
    expect(bench.asked).to.have.length(2)
  })

  it('that are invented have a concurrency limit of their own, so that known ones are not delayed', async () => {
    const bench = openBench()
    await bench.verify(key)
    bench.pass(BELIEVED_MS)
    const letThrough = bench.holdBack()
    const strangers = Array.from({ length: 200 }, (_, n) => bench.faultOf(madeUp(n + 2)))
    const known = bench.faultOf(key)
    await new Promise(resolve => setImmediate(resolve))
    expect(bench.asked.filter(asked => asked !== ID)).to.have.length(AT_ONCE_MAX)
    expect(
      bench.asked.filter(asked => asked === ID),
      'the known one is being read',
    ).to.have.length(2)
    letThrough()
    expect(await known).to.equal(undefined)
    expect(new Set(await Promise.all(strangers))).to.deep.equal(new Set(['key_unissued']))
    expect(bench.asked).to.have.length(202)
  })
})
