/** The meaning of errors of `pg`: whether a write may have happened, and whether the connection is still usable. */

import { DatabaseError } from 'pg'
import { Unavailable } from '../../ports.ts'

/** Classes of SQLSTATE, its first two characters: 08 connection, 53 resources, 57 operator, 58 system, XX internal. */
const INFRASTRUCTURE_CLASSES: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX'])

/** Rolled back by Postgres, and likely to succeed when repeated: serialization, deadlock, lock timeout. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['40001', '40P01', '55P03'])

/** The session has ended, and the response to its statement is lost. Idle timeouts (25P03, 57P05), shutdowns. */
const ENDED_CODES: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04'])

/** The server accepts reads alone: a standby, or a primary that was replaced. A new connection may reach the primary. */
const READ_ONLY_CODE = '25006'

/** A prepared statement whose result type was changed by a migration; a new connection prepares it again. */
const STALE_PLAN_CODE = '0A000'

const READ = /^\s*(select|show|table|values|explain)\b/i

/** Whether a lost response of this statement can hide a change. `with` may write, so it counts as a write. */
export const mayWrite = (text: string): boolean => !READ.test(text)

const codeOf = (error: unknown): string => (error instanceof DatabaseError ? (error.code ?? '') : '')

const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === STALE_PLAN_CODE && error instanceof Error && error.message.includes('cached plan')

/** Whether the connection must be closed: it ended, or the response to an abandoned statement is still to come. */
export const endsConnection = (error: unknown): boolean =>
  !(error instanceof DatabaseError) ||
  ENDED_CODES.has(codeOf(error)) ||
  codeOf(error) === READ_ONLY_CODE ||
  isStalePlan(error)

/** The error of a statement that was sent. `lost` is the effect if its response was lost. */
export const statementError = (error: unknown, lost: Unavailable['effect']): unknown => {
  if (error instanceof Unavailable) return error
  // An error of the client: the connection broke, or a timeout passed.
  if (!(error instanceof DatabaseError)) return new Unavailable('database', { effect: lost, cause: error })
  const code = codeOf(error)
  if (ENDED_CODES.has(code)) return new Unavailable('database', { effect: lost, cause: error })
  // The server reported that it did nothing. That includes statement timeouts (57014), which are rolled back.
  const isRefused = INFRASTRUCTURE_CLASSES.has(code.slice(0, 2)) || code === READ_ONLY_CODE
  const passes = isRefused || TRANSIENT_CODES.has(code) || isStalePlan(error)
  return passes ? new Unavailable('database', { effect: 'none', cause: error }) : error
}

/** The error of a statement of a snapshot, which is read-only by itself: a write in it is a bug, and no state of the server. */
export const snapshotError = (error: unknown): unknown =>
  error instanceof Unavailable && codeOf(error.cause) === READ_ONLY_CODE ? error.cause : error
