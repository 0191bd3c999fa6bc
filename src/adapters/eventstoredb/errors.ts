import code from '@eventstore/db-client/generated/code_pb.js'

/** Which errors mean that nothing was written, and which that another attempt may succeed. Refusals are in refusals.ts. */

/** No response came for too long; the connection may be half open. */
export class ResponseTimeout extends Error {
  readonly limitMs: number

  constructor(limitMs: number) {
    super(`The event store was silent for ${(limitMs / 1_000).toFixed(1)} s.`)
    this.name = 'ResponseTimeout'
    this.limitMs = limitMs
  }
}

/** The response has neither success nor a known reason. */
export class UnknownResponse extends Error {
  constructor(text: string) {
    super(`The response of the event store has neither success nor a known reason: ${text}`)
    this.name = 'UnknownResponse'
  }
}

/** The store ended a call that carries many appends. `effect` is the effect of appends without a response. */
export class CallEnded extends Error {
  readonly effect: 'none' | 'unknown'

  constructor(effect: CallEnded['effect']) {
    super('The event store ended the call.')
    this.name = 'CallEnded'
    this.effect = effect
  }
}

type CommandError = Error & { readonly type: string; readonly actualVersion?: unknown }

/** The error as classified by the client, by its `type`; undefined for errors of other origin. */
export const causeOf = (error: unknown): CommandError | undefined =>
  error instanceof Error && 'type' in error && typeof error.type === 'string' ? (error as CommandError) : undefined

const LOST_TYPES = new Set(['unavailable', 'cancelled', 'timeout', 'deadline-exceeded', 'unknown', 'not-leader'])

/** The node is not the leader, and names it. The client makes its next call there. */
export const isNotLeader = (error: unknown): boolean => causeOf(error)?.type === 'not-leader'

/** A node that knows no leader says so with the status UNKNOWN. */
const NO_LEADER = 'No leader info available'

/** A handler of the store failed: it cannot continue from the requested position. Repeating does not help. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === code.Code.UNKNOWN && !error.message.includes(NO_LEADER)

/** Adds the position to the error for the operator, since the store says only that its handler failed. */
export const withPosition = (error: unknown, after: bigint | 'start' | 'end'): unknown =>
  isRefusal(error) && error instanceof Error
    ? new Error(
        `The event store cannot continue after position ${after}: is it an event of this log? ${error.message}`,
        {
          cause: error,
        },
      )
    : error

/** The store did not answer; a later attempt may succeed. Other errors are answers, or bugs. */
export const isLost = (error: unknown): boolean => {
  if (error instanceof ResponseTimeout || error instanceof CallEnded || error instanceof UnknownResponse) return true
  const type = causeOf(error)?.type
  if (type !== undefined) return LOST_TYPES.has(type) && !isRefusal(error)
  return isUndiscovered(error) || (error instanceof Error && 'code' in error)
}

/** No node of the cluster is known that a call could be made to. */
export const isUndiscovered = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Failed to discover')

const NEVER_SENT =
  /ECONNREFUSED|EHOSTUNREACH|ENOTFOUND|No connection established|Name resolution|nothing was written|Failed to discover/

/** The reasons for which a node handles no append, in the words of the client, which knows no error for them. */
const NOT_HANDLED = /^Could not recognize (?:Server Is Not Ready|Server Is Busy|No leader info)/

/** Certain that the store never received the append, or did nothing with it. */
export const wasNeverSent = (error: unknown): boolean =>
  error instanceof CallEnded
    ? error.effect === 'none'
    : error instanceof Error && (NEVER_SENT.test(error.message) || NOT_HANDLED.test(error.message))

/** A gRPC status without the client's translation. */
export const isCallError = (error: unknown): error is Error & { code: number; details: string } =>
  error instanceof Error && 'code' in error && 'details' in error

/** The server is older than the called method. */
export const isUnimplemented = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === code.Code.UNIMPLEMENTED
