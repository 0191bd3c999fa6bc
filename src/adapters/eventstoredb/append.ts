import { setTimeout as sleep } from 'node:timers/promises'
import { type Appended, type StoredEvent, Unavailable } from '../../ports.ts'
import type { Sending } from './appendCall.ts'
import type { Append } from './appendMessages.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { CallEnded, ResponseTimeout, causeOf, isLost, isUndiscovered, wasNeverSent } from './errors.ts'
import { readStream } from './read.ts'
import { refusalOf } from './refusals.ts'
import { within } from '../../lib/time.ts'

const RESEND_AFTER_MS = 50
const APPEND_ATTEMPTS_MAX = 2

/** Resends an unanswered append once with the same event ids, which the store recognizes. Unanswered again it is unknown. */
export const append = async (connection: Connection, request: Append, timeoutMs: number): Promise<Appended> => {
  const deadlineMs = performance.now() + timeoutMs
  let mayBeWritten = false
  for (let attempt = 1; ; attempt += 1) {
    const { client } = connection
    const outcome = await attemptOf(client, request, deadlineMs)
    if (!('failure' in outcome)) {
      if (outcome.appended.ok || !mayBeWritten) return outcome.appended
      return outcomeOfFirst(connection, request, { refusal: outcome.appended, deadlineMs })
    }
    const { failure, wasSent } = outcome
    // A client that has found no node once may keep that failure for all later appends.
    if (failure instanceof ResponseTimeout || isUndiscovered(failure)) connection.renew(client)
    const refused = refusalOf(failure)
    if (refused !== undefined)
      throw new Unavailable('event store', { effect: mayBeWritten ? 'unknown' : 'none', cause: refused })
    if (!isLost(failure)) throw failure
    const neverSent = !wasSent || wasNeverSent(failure)
    mayBeWritten ||= !neverSent
    const mayTryAgain = attempt < APPEND_ATTEMPTS_MAX && performance.now() + RESEND_AFTER_MS < deadlineMs
    if (!mayTryAgain || (neverSent && !(failure instanceof CallEnded)))
      throw new Unavailable('event store', { effect: mayBeWritten ? 'unknown' : 'none', cause: failure })
    await sleep(RESEND_AFTER_MS)
  }
}

type Outcome = { readonly appended: Appended } | { readonly failure: unknown; readonly wasSent: boolean }

const attemptOf = async (client: Client, request: Append, deadlineMs: number): Promise<Outcome> => {
  const withinMs = Math.max(deadlineMs - performance.now(), 1)
  const sending: Sending = { isAbandoned: false, sent: false }
  try {
    return { appended: await limited(client.append(request, sending), withinMs) }
  } catch (failure) {
    const conflict = conflictIn(failure)
    return conflict === undefined ? { failure, wasSent: sending.sent } : { appended: conflict }
  } finally {
    sending.isAbandoned = true
    sending.forget?.()
  }
}

type Refusal = { readonly refusal: Appended; readonly deadlineMs: number }

/** By the events at its revisions: a cluster without a leader refuses a resend while the first is not yet readable. */
const outcomeOfFirst = async (
  connection: Connection,
  request: Append,
  { refusal, deadlineMs }: Refusal,
): Promise<Appended> => {
  const { stream, events, expected } = request
  const from = expected === 'no_stream' ? 0n : expected + 1n
  const stored: StoredEvent[] = []
  try {
    const signal = AbortSignal.timeout(Math.max(Math.ceil(deadlineMs - performance.now()), 1))
    for await (const event of readStream(connection, stream, { from, limit: events.length, signal })) stored.push(event)
  } catch (error) {
    throw new Unavailable('event store', { effect: 'unknown', cause: error })
  }
  if (stored.some(({ id }, n) => id !== events[n]?.id)) return refusal
  const last = stored.at(-1)
  if (last === undefined || stored.length < events.length) throw new Unavailable('event store', { effect: 'unknown' })
  return { ok: true, revision: last.revision, position: last.position }
}

const conflictIn = (error: unknown): Appended | undefined => {
  const cause = causeOf(error)
  if (cause?.type !== 'wrong-expected-version') return undefined
  return { ok: false, actual: typeof cause.actualVersion === 'bigint' ? cause.actualVersion : 'no_stream' }
}

/** Adds a time limit, since the client itself waits without one. */
const limited = <T>(work: Promise<T>, limitMs: number): Promise<T> =>
  within(work, limitMs, () => {
    throw new ResponseTimeout(limitMs)
  })
