import { expect } from 'chai'
import { operation, type OperationEvent } from '../../streams/operation/index.ts'
import { scenario } from '../support/scenario.ts'
import { completeExport, exportCompleted, exportRequested, requestExport } from './samples.ts'

const { given } = scenario(operation.decider)

const FAILURES_MAX = 3
/** The limit of attempts, with those that ended without an event. */
const ATTEMPTS_MAX = 20

const start = (run: string) => ({ type: 'StartAttempt', run }) as const
const fail = (run: string) => ({ type: 'FailAttempt', run, code: 'dependency_unavailable' }) as const
const cancel = { type: 'CancelOperation' } as const
const expireAt = (at: string) => ({ type: 'ExpireOperation', at }) as const
const expire = expireAt('2026-02-01T00:00:00.000Z')

const started = (attempt: number, run: string): OperationEvent => ({ type: 'OperationStarted', data: { attempt, run } })
const failedOnce = (attempt: number, run: string): OperationEvent => ({
  type: 'OperationAttemptFailed',
  data: { attempt, run, code: 'dependency_unavailable' },
})
const failed = (attempt: number, code: string): OperationEvent => ({ type: 'OperationFailed', data: { attempt, code } })
const cancelled: OperationEvent = { type: 'OperationCancelled', data: {} }
const withdraw = { type: 'WithdrawFile' } as const
const expired: OperationEvent = { type: 'OperationExpired', data: {} }

describe('an operation', () => {
  describe('is requested', () => {
    it('with its idempotency record', () =>
      given().when(requestExport).expectThenRefused('concurrent_modification', exportRequested))
    it('once; a second command is refused as a concurrent modification', () =>
      given(exportRequested).when(requestExport).expectRejected('concurrent_modification'))
  })

  describe('is started', () => {
    it('by a worker', () => given(exportRequested).when(start('a')).expectOnce(started(1, 'a')))
    it('again by another worker, which supersedes the first', () =>
      given(exportRequested, started(1, 'a')).when(start('b')).expectOnce(started(2, 'b')))
    it('again by the same worker after a failure', () =>
      given(exportRequested, started(1, 'a'), failedOnce(1, 'a')).when(start('a')).expectOnce(started(2, 'a')))
    it(`at most ${ATTEMPTS_MAX} times, in case it crashes every worker`, () => {
      const attempts = Array.from({ length: ATTEMPTS_MAX }, (_, n) => started(n + 1, `run ${n}`))
      given(exportRequested, ...attempts)
        .when(start('last'))
        .expectOnce(failed(ATTEMPTS_MAX, 'internal_error'))
      given(exportRequested, ...attempts.slice(1))
        .when(start('last'))
        .expectOnce(failed(ATTEMPTS_MAX, 'internal_error'))
      given(exportRequested, ...attempts.slice(0, -1))
        .when(start('last'))
        .expectOnce(started(ATTEMPTS_MAX, 'last'))
    })
    it('not when it has ended', () => {
      for (const end of [exportCompleted(1, 'a'), failed(1, 'x'), cancelled, expired])
        given(exportRequested, started(1, 'a'), end).when(start('b')).expectNothing()
    })
    it('not before it exists', () => given().when(start('a')).expectRejected('resource_not_found'))
  })

  describe('fails', () => {
    it('and is tried again', () =>
      given(exportRequested, started(1, 'a')).when(fail('a')).expectOnce(failedOnce(1, 'a')))
    it(`permanently at failure ${FAILURES_MAX}`, () =>
      given(exportRequested, started(1, 'a'), failedOnce(1, 'a'), started(2, 'b'), failedOnce(2, 'b'), started(3, 'c'))
        .when(fail('c'))
        .expectOnce(failed(3, 'dependency_unavailable')))
    it('by recorded failures, not by attempts that ended without an event', () =>
      given(exportRequested, started(1, 'a'), started(2, 'b'), started(3, 'c'))
        .when(fail('c'))
        .expectOnce(failedOnce(3, 'c')))
    it('not by a superseded worker', () =>
      given(exportRequested, started(1, 'a'), started(2, 'b')).when(fail('a')).expectNothing())
    it('not before it exists', () => given().when(fail('a')).expectRejected('resource_not_found'))
  })

  describe('is completed', () => {
    it('by the worker of the present attempt', () =>
      given(exportRequested, started(1, 'a')).when(completeExport('a')).expectOnce(exportCompleted(1, 'a')))
    it('not by a superseded worker', () =>
      given(exportRequested, started(1, 'a'), started(2, 'b'))
        .when(completeExport('a'))
        .expectRejected('concurrent_modification'))
    it('not by a second one', () =>
      given(exportRequested, started(1, 'a'), exportCompleted(1, 'a'))
        .when(completeExport('b'))
        .expectRejected('concurrent_modification'))
    it('not when it was cancelled in the meantime', () =>
      given(exportRequested, started(1, 'a'), cancelled)
        .when(completeExport('a'))
        .expectRejected('concurrent_modification'))
    it('not before it exists', () => given().when(completeExport('a')).expectRejected('resource_not_found'))
    it('at a position beyond the precision of doubles', () => {
      const completed = exportCompleted(1, 'a')
      const data = { ...completed.data, to_position: 2n ** 63n }
      const { data: stored } = operation.codec.encode({ ...completed, data })
      expect(stored['to_position']).to.equal('9223372036854775808')
      expect(operation.codec.decode('ExportCompleted', stored, 1).data).to.deep.equal(data)
    })
  })

  describe('is cancelled', () => {
    it('while it is open', () => {
      given(exportRequested).when(cancel).expectOnce(cancelled)
      given(exportRequested, started(1, 'a')).when(cancel).expectOnce(cancelled)
    })
    it('without effect when it has ended', () => {
      for (const end of [exportCompleted(1, 'a'), failed(1, 'x'), expired])
        given(exportRequested, started(1, 'a'), end).when(cancel).expectNothing()
    })
    it('not before it exists', () => given().when(cancel).expectRejected('resource_not_found'))
  })

  describe('expires', () => {
    it('at its time of expiry, executed or not', () => {
      given(exportRequested).when(expire).expectOnce(expired)
      given(exportRequested, started(1, 'a'), exportCompleted(1, 'a')).when(expire).expectOnce(expired)
    })
    it('not a millisecond earlier', () =>
      given(exportRequested).when(expireAt('2026-01-31T23:59:59.999Z')).expectNothing())
    it('not when it has no file', () => {
      for (const end of [failed(1, 'x'), cancelled]) given(exportRequested, end).when(expire).expectNothing()
    })
    it('before its time, when its file is withdrawn: a finished one only, and once', () => {
      const completed = [exportRequested, started(1, 'a'), exportCompleted(1, 'a')]
      given(...completed)
        .when(withdraw)
        .expectOnce(expired)
      for (const other of [[], [started(1, 'a')], [cancelled], [failed(1, 'x')]])
        given(exportRequested, ...other)
          .when(withdraw)
          .expectNothing()
      given().when(withdraw).expectRejected('resource_not_found')
    })
    it('not before it exists', () => given().when(expire).expectRejected('resource_not_found'))
  })
})
