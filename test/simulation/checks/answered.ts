import type { StoredEvent } from '../../../src/ports.ts'
import type { Attempt } from '../history.ts'

/** The attempts of clients that got an answer, for the checks of answers. */

export type Answered = Attempt & { readonly answer: NonNullable<Attempt['answer']> }

export const isAnswered = (attempt: Attempt): attempt is Answered => attempt.answer !== undefined

export const textOf = ({ action, sent, answer }: Answered): string =>
  `#${action} ${sent.correlationId} ${sent.operation} ${sent.id ?? ''} → ${answer.status} ${answer.code ?? ''}`

/** The correlation id of the request that caused the event. */
export const correlationIdOf = ({ metadata }: StoredEvent): unknown => metadata['$correlationId']
