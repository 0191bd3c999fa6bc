/** What an error of `pg` means for the caller: whether anything may have been done, and whether the connection is usable. */

import { DatabaseError } from 'pg'
import { Unavailable } from '../../ports.ts'

/** The class is the first two characters of an SQLSTATE. 08 connection, 53 resources, 57 operator, 58 system, XX internal. */
const MACHINERY_CLASSES: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX'])

/** Rolled back by Postgres, and fine on another attempt: serialization, deadlock, lock timeout. */
const PASSING_CODES: ReadonlySet<string> = new Set(['40001', '40P01', '55P03'])

/** The session is over; the answer to what it was doing is lost with it. Idle timeouts (25P03, 57P05), shutdowns. */
const ENDED_CODES: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04'])

/** A prepared statement whose result shape changed under it by a migration; a new connection prepares it anew. */
const STALE_PLAN_CODE = '0A000'

const READ = /^\s*(select|show|table|values|explain)\b/i

/** Whether losing the answer of this statement can leave a change behind. `with` may write, so it counts as a write. */
export const mayWrite = (text: string): boolean => !READ.test(text)

const codeOf = (error: unknown): string => (error instanceof DatabaseError ? (error.code ?? '') : '')

const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === STALE_PLAN_CODE && error instanceof Error && error.message.includes('cached plan')

/** Whether the connection can serve nobody else: it ended, or an answer that nobody waits for is still to come. */
export const endsConnection = (error: unknown): boolean =>
  !(error instanceof DatabaseError) || ENDED_CODES.has(codeOf(error)) || isStalePlan(error)

/** The error for a statement that was sent. `lost` is the effect to promise when the answer was lost. */
export const statementError = (error: unknown, lost: Unavailable['effect']): unknown => {
  if (error instanceof Unavailable) return error
  // Not from the server: the connection broke, or the client stopped waiting.
  if (!(error instanceof DatabaseError)) return new Unavailable('database', lost, error)
  const code = codeOf(error)
  if (ENDED_CODES.has(code)) return new Unavailable('database', lost, error)
  // The server answered that it did not do it. A statement over its timeout (57014) is among these: it is rolled back.
  const passes = MACHINERY_CLASSES.has(code.slice(0, 2)) || PASSING_CODES.has(code) || isStalePlan(error)
  return passes ? new Unavailable('database', 'none', error) : error
}
