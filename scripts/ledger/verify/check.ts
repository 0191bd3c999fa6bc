import { logIn } from '../../../src/logIdentity/logIdentity.ts'
import type { Config } from '../../../src/settings/config.ts'
import type { Database, EventStore, World } from '../../../src/ports.ts'
import type { StartProgress } from '../progress.ts'

/** One thing that is wrong. `place` has the members that locate it, such as stream, revision, position or account. */
export type Finding = {
  /** A short word for programs: `edited`, `missing`, `truncated`. */
  readonly kind: string
  /** One sentence for a reader. */
  readonly detail: string
  readonly place?: Readonly<Record<string, string | number | bigint | null>>
}

/** The outcome of a check that was made. Without findings it is good. */
export type Outcome = {
  /** One sentence: the objects that were compared, and how many. */
  readonly detail: string
  readonly findings: readonly Finding[]
  /** Figures for programs. */
  readonly counts?: Readonly<Record<string, number | bigint>>
  /** Nothing was compared, because there is nothing yet. */
  readonly skipped?: boolean
}

export type Checked = Outcome & { readonly check: string }

/** The sources of a check, which it only reads. */
export type Verified = {
  readonly store: EventStore
  readonly database: Database
  readonly config: Config
  readonly world: World
  readonly startProgress: StartProgress
  /** The last row that the check of texts has read; where it begins, at first. */
  readonly texts: { after: string }
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
}

export type VerifyCheck = {
  /** The name in the output: `log`, `books`, `evidence`. */
  readonly name: string
  /** Throws Unavailable when a dependency does not answer. */
  readonly run: (verified: Verified) => Promise<Outcome>
}

/** The outcome of a check that had nothing to compare: a finding, unless nothing is in the log either. */
export const nothingCompared = async ({ store }: Pick<Verified, 'store'>, reason: string): Promise<Outcome> => {
  const log = await logIn(store)
  if (log === undefined) return { detail: reason, findings: [], skipped: true }
  const detail = `${reason} The log ${log} has events, and nothing was compared with them.`
  return { detail: reason, findings: [{ kind: 'not_compared', detail }] }
}
