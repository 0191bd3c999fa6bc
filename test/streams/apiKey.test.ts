import { expect } from 'chai'
import { PersistentSet } from '../../streams/persistentMap.ts'
import { apiKey } from '../../streams/apiKey/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'
import { apiKeyIssued, apiKeyRevoked, apiKeyRotated, claim, issueApiKey, keySecret, rotateApiKey } from './samples.ts'

const { given } = scenario(apiKey.decider)
const revoke = { type: 'RevokeApiKey' } as const

describe('an API key', () => {
  describe('is issued', () => {
    it('with its idempotency record, for the requested time', () =>
      given().when(issueApiKey).expectThenRefused('concurrent_modification', apiKeyIssued))
    it('once; a second command is refused as a concurrent modification', () =>
      given(apiKeyIssued).when(issueApiKey).expectRejected('concurrent_modification'))
    it('not again when it was revoked', () =>
      given(apiKeyIssued, apiKeyRevoked).when(issueApiKey).expectRejected('concurrent_modification'))
  })

  describe('is rotated', () => {
    it('to a secret with a whole lifetime; the previous one remains valid for the overlap', () =>
      given(apiKeyIssued)
        .when(rotateApiKey(2, '2026-01-10T00:00:00.000Z', 3600))
        .expectOnce(apiKeyRotated(2, '2026-02-09T00:00:00.000Z', '2026-01-10T01:00:00.000Z')))
    it('without extending the lifetime of the previous secret', () =>
      given(apiKeyIssued)
        .when(rotateApiKey(2, '2026-01-30T23:59:00.000Z', 3600))
        .expectOnce(apiKeyRotated(2, '2026-03-01T23:59:00.000Z', '2026-01-31T00:00:00.000Z')))
    it('with the end of the previous secret at once, when there is no overlap', () =>
      given(apiKeyIssued)
        .when(rotateApiKey(2, '2026-01-10T00:00:00.000Z', 0))
        .expectOnce(apiKeyRotated(2, '2026-02-09T00:00:00.000Z', '2026-01-10T00:00:00.000Z')))
    it('also when it has expired; the expired secret remains expired', () =>
      given(apiKeyIssued)
        .when(rotateApiKey(2, '2026-06-01T00:00:00.000Z', 3600))
        .expectOnce(apiKeyRotated(2, '2026-07-01T00:00:00.000Z', '2026-01-31T00:00:00.000Z')))
    it('again while both are valid, which ends the oldest', () => {
      const first = apiKeyRotated(2, '2026-02-09T00:00:00.000Z', '2026-01-17T00:00:00.000Z')
      const second = apiKeyRotated(3, '2026-02-10T00:00:00.000Z', '2026-01-18T00:00:00.000Z')
      given(apiKeyIssued, first)
        .when(rotateApiKey(3, '2026-01-11T00:00:00.000Z', 604_800))
        .expectOnce(second)
      expect(stateAfter(apiKey.decider, [apiKeyIssued, first, second])).to.deep.equal({
        status: 'active',
        scopes: ['orders:read'],
        quota: { requests: 10, window_seconds: 60 },
        lifetime_days: 30,
        rotations: PersistentSet.of(),
        current: keySecret(3, '2026-02-10T00:00:00.000Z'),
        previous: keySecret(2, '2026-01-18T00:00:00.000Z'),
      })
    })
    it('once per Idempotency-Key, also after later changes', () => {
      const command = { ...rotateApiKey(2, '2026-01-10T00:00:00.000Z', 0), claim }
      const first = apiKeyRotated(2, '2026-02-09T00:00:00.000Z', '2026-01-10T00:00:00.000Z')
      const keyed: typeof first = { ...first, data: { ...first.data, claim } }
      given(apiKeyIssued).when(command).expectOnce(keyed)
      const again = { ...rotateApiKey(7, '2026-01-12T00:00:00.000Z'), claim }
      const second = apiKeyRotated(3, '2026-02-10T00:00:00.000Z', '2026-01-18T00:00:00.000Z')
      for (const since of [[], [second], [second, apiKeyRevoked]])
        given(apiKeyIssued, keyed, ...since)
          .when(again)
          .expectNothing()
    })
    it('not when it is revoked', () =>
      given(apiKeyIssued, apiKeyRevoked)
        .when(rotateApiKey(2, '2026-01-10T00:00:00.000Z'))
        .expectRejected('resource_not_found'))
    it('not before it exists', () =>
      given().when(rotateApiKey(2, '2026-01-10T00:00:00.000Z')).expectRejected('resource_not_found'))
  })

  describe('is revoked', () => {
    it('permanently, with all of its secrets', () => {
      given(apiKeyIssued).when(revoke).expectThenRefused('resource_not_found', apiKeyRevoked)
      const rotated = apiKeyRotated(2, '2026-02-09T00:00:00.000Z', '2026-01-17T00:00:00.000Z')
      given(apiKeyIssued, rotated).when(revoke).expectThenRefused('resource_not_found', apiKeyRevoked)
      const state = stateAfter(apiKey.decider, [apiKeyIssued, rotated, apiKeyRevoked])
      expect(state).to.have.property('status', 'revoked')
      expect(state).to.not.have.any.keys('current', 'previous')
    })
    it('not before it exists', () => given().when(revoke).expectRejected('resource_not_found'))
  })
})
