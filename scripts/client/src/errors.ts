import type { Problem } from './generated.ts'

/** The violations that the detail does not name, in words. */
export const violationsBeyond = (detail: string, errors: NonNullable<Problem['errors']>): readonly string[] =>
  errors.map(error => `${error.pointer}: ${error.detail}`).filter(violation => !detail.includes(violation))

const messageOf = (status: number, problem: Problem | undefined): string => {
  if (problem === undefined) return `${status}: an answer without a problem document, as proxies send`
  const { code, detail, errors = [] } = problem
  return [`${status} ${code}: ${detail}`, ...violationsBeyond(detail, errors)].join(' ')
}

/** The ledger refused the request, or failed: `409 payment_exceeds_due: …`. */
export class LedgerError extends Error {
  readonly status: number
  readonly headers: Headers
  /** Undefined when the answer was not made by the ledger. */
  readonly problem: Problem | undefined
  constructor({ status, headers }: Response, problem?: Problem) {
    super(messageOf(status, problem))
    this.name = 'LedgerError'
    this.status = status
    this.headers = headers
    this.problem = problem
  }

  get code(): Problem['code'] | undefined {
    return this.problem?.code
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.problem?.retry.retryable ?? this.status >= 500
  }
}

/** The attempt had no answer, or one that broke off. The cause is the error of `fetch`. */
export class NoAnswerError extends Error {
  readonly url: string
  constructor(url: string, cause: unknown) {
    super(`No answer from ${url}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'NoAnswerError'
    this.url = url
  }
}

/**
 * A write may have had its effect, and no attempt was told: read the state, or send the request again with the same
 * Idempotency-Key. The cause is the error of the last attempt.
 */
export class EffectUnknownError extends Error {
  readonly idempotencyKey: string | undefined
  constructor(cause: unknown, idempotencyKey?: string) {
    const end = cause instanceof Error ? cause.message : String(cause)
    super(`The effect of the request is unknown. Its last attempt ended with: ${end}`, { cause })
    this.name = 'EffectUnknownError'
    this.idempotencyKey = idempotencyKey
  }
}
