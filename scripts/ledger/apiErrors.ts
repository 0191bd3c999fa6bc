import { EffectUnknownError, LedgerError, NoAnswerError, violationsBeyond } from '../client/src/errors.ts'

/** The errors of the client in sentences for the person at the terminal. */

const refusalOf = ({ status, problem }: LedgerError): string => {
  if (problem === undefined) return `The API answered ${status}, in words that are not its own.`
  const { title, detail, code, correlation_id, errors = [] } = problem
  const sentences = [title, ...(detail === title ? [] : [detail]), ...violationsBeyond(detail, errors)]
  return `${sentences.join(' ')} (${code}, correlation id ${correlation_id})`
}

/** The sentence for a command that may have taken effect. */
const howToRepeat = ({ idempotencyKey }: EffectUnknownError): string =>
  idempotencyKey === undefined
    ? ' The command may have taken effect.'
    : ` The command may have taken effect: repeat it with --idempotency-key ${idempotencyKey}, and it does so once.`

/** Undefined for an error that is not the client's. */
export const apiErrorSentence = (error: unknown): string | undefined => {
  if (error instanceof LedgerError) return refusalOf(error)
  if (error instanceof NoAnswerError)
    return `The API at ${new URL(error.url).origin} does not answer. See npm run ledger -- doctor.`
  if (error instanceof EffectUnknownError) return (apiErrorSentence(error.cause) ?? '') + howToRepeat(error)
  return undefined
}
