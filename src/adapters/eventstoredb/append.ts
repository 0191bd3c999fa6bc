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

/** Appends with a timeout and one resend, and tells certain outcomes from unknown ones. */

const RESEND_AFTER_MS = 50
const APPEND_ATTEMPTS_MAX = 2

/**
 * An append without a response is sent once more with the same event ids: the store recognizes them, so the second
 * response is that of the first. An append that is unanswered after `timeoutMs` is reported as unknown.
 */
export const append = async (connection: Connection, asked: Append, timeoutMs: number): Promise<Appended> => {
  const givenUpAtMs = performance.now() + timeoutMs
  let mayBeWritten = false
  for (let attempt = 1; ; attempt += 1) {
    const { client } = connection
    const outcome = await attemptOf(client, asked, givenUpAtMs)
    if (!('failure' in outcome)) {
      if (outcome.appended.ok || !mayBeWritten) return outcome.appended
      return outcomeOfFirst(connection, asked, { refused: outcome.appended, givenUpAtMs })
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
    const mayTryAgain = attempt < APPEND_ATTEMPTS_MAX && performance.now() + RESEND_AFTER_MS < givenUpAtMs
    if (!mayTryAgain || (neverSent && !(failure instanceof CallEnded)))
      throw new Unavailable('event store', { effect: mayBeWritten ? 'unknown' : 'none', cause: failure })
    await sleep(RESEND_AFTER_MS)
  }
}

type Outcome = { readonly appended: Appended } | { readonly failure: unknown; readonly wasSent: boolean }

const attemptOf = async (client: Client, asked: Append, givenUpAtMs: number): Promise<Outcome> => {
  const withinMs = Math.max(givenUpAtMs - performance.now(), 1)
  const sending: Sending = { givenUp: false, sent: false }
  try {
    return { appended: await limited(client.append(asked, sending), withinMs) }
  } catch (failure) {
    const conflict = conflictIn(failure)
    return conflict === undefined ? { failure, wasSent: sending.sent } : { appended: conflict }
  } finally {
    sending.givenUp = true
    sending.forget?.()
  }
}

type Refused = { readonly refused: Appended; readonly givenUpAtMs: number }

/**
 * The outcome of the first append, by the events at its revisions. A refusal of the resend does not tell it: a cluster
 * that has lost its leader refuses the resend because of the first append while that is committed and not yet readable.
 */
const outcomeOfFirst = async (
  connection: Connection,
  asked: Append,
  { refused, givenUpAtMs }: Refused,
): Promise<Appended> => {
  const { stream, events, expected } = asked
  const from = expected === 'no_stream' ? 0n : expected + 1n
  const found: StoredEvent[] = []
  try {
    const signal = AbortSignal.timeout(Math.max(Math.ceil(givenUpAtMs - performance.now()), 1))
    for await (const event of readStream(connection, stream, { from, limit: events.length, signal })) found.push(event)
  } catch (error) {
    throw new Unavailable('event store', { effect: 'unknown', cause: error })
  }
  if (found.some(({ id }, n) => id !== events[n]?.id)) return refused
  const last = found.at(-1)
  if (last === undefined || found.length < events.length) throw new Unavailable('event store', { effect: 'unknown' })
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
