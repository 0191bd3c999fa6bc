import code from '@eventstore/db-client/generated/code_pb.js'

/** Nothing came for too long; the connection may be half open. */
export class Silence extends Error {
  readonly limitMs: number

  constructor(limitMs: number) {
    super(`The event store was silent for ${limitMs} ms.`)
    this.name = 'Silence'
    this.limitMs = limitMs
  }
}

/** The store answered, and the answer says neither success nor a reason that can be read. */
export class Unreadable extends Error {
  constructor(text: string) {
    super(`The event store gave an answer that says nothing: ${text}`)
    this.name = 'Unreadable'
  }
}

/** The store ended a call that many appends share. `effect`: what may have become of one that has no answer. */
export class CallEnded extends Error {
  readonly effect: 'none' | 'unknown'

  constructor(effect: CallEnded['effect']) {
    super('The event store ended the call.')
    this.name = 'CallEnded'
    this.effect = effect
  }
}

type CommandError = Error & { readonly type: string; readonly actualVersion?: unknown }

/** The error as the client classifies it, by its `type`; undefined for anything that is not the client's. */
export const causeOf = (error: unknown): CommandError | undefined =>
  error instanceof Error && 'type' in error && typeof error.type === 'string' ? (error as CommandError) : undefined

const LOST_TYPES = new Set(['unavailable', 'cancelled', 'timeout', 'deadline-exceeded', 'unknown', 'not-leader'])

/** A handler of the store failed: it cannot go on from the position that was asked for. Asking again does not help. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === code.Code.UNKNOWN

/** Names the place of a refusal, for the operator: the store says only that its handler failed. */
export const placed = (error: unknown, after: bigint | 'start'): unknown =>
  isRefusal(error) && error instanceof Error
    ? new Error(`The event store cannot go on behind position ${after}: is it an event of this log? ${error.message}`, {
        cause: error,
      })
    : error

/** The store did not answer; trying again later may help. Everything else is an answer, or a bug. */
export const isLost = (error: unknown): boolean => {
  if (error instanceof Silence || error instanceof CallEnded || error instanceof Unreadable) return true
  const type = causeOf(error)?.type
  if (type !== undefined) return LOST_TYPES.has(type) && !isRefusal(error)
  return error instanceof Error && ('code' in error || error.message.startsWith('Failed to discover'))
}

const NEVER_SENT =
  /ECONNREFUSED|EHOSTUNREACH|ENOTFOUND|No connection established|Name resolution|nothing was written|Failed to discover/

/** Certain that the store never saw it, or did nothing with it. */
export const wasNeverSent = (error: unknown): boolean =>
  error instanceof CallEnded ? error.effect === 'none' : error instanceof Error && NEVER_SENT.test(error.message)

/** The status with which a call ended, before the client's own words for it. */
export const isCallError = (error: unknown): error is Error & { code: number; details: string } =>
  error instanceof Error && 'code' in error && 'details' in error
