import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { StartupError } from '../../src/lib/startupError.ts'

/** The advisories that `npm audit` reports on production dependencies, and those that were accepted. */

export type Advisory = {
  /** Its id at GitHub, such as GHSA-xxxx-xxxx-xxxx. */
  readonly advisory: string
  readonly name: string
  readonly severity: string
  readonly title: string
}
export type Accepted = {
  readonly advisory: string
  /** Why it does no harm here. */
  readonly reason: string
  /** The last day of the acceptance, YYYY-MM-DD, UTC. */
  readonly until: string
}

/** Advisories that do no harm here, each for a limited time. */
export const ACCEPTED: readonly Accepted[] = []

type Via = { readonly name: string; readonly url: string; readonly severity: string; readonly title: string }
/** The JSON of `npm audit`: a report, a request that failed (`message`), or another failure (`error`). */
type AuditReport = {
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (string | Via)[] }>>
  readonly message?: string
  readonly error?: { readonly summary: string }
}

/** The advisories of a report, each once for each package. A text in `via` is a dependency, which has an entry of its own. */
const advisoriesIn = (vulnerabilities: NonNullable<AuditReport['vulnerabilities']>): readonly Advisory[] => {
  const vias = Object.values(vulnerabilities).flatMap(({ via }) => via.filter(one => typeof one !== 'string'))
  const all = vias.map(({ name, url, severity, title }): [string, Advisory] => {
    const advisory = url.slice(url.lastIndexOf('/') + 1)
    return [`${name} ${advisory}`, { advisory, name, severity, title }]
  })
  return [...new Map(all).values()]
}

const AUDIT = ['audit', '--omit=dev', '--package-lock-only', '--json', '--fetch-retries=1', '--fetch-timeout=30000']

/** npm ends with exit code 1 if it finds anything. */
const runAudit = (): Promise<string> =>
  promisify(execFile)('npm', AUDIT, { cwd: new URL('../../', import.meta.url), maxBuffer: 64 * 2 ** 20 }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout?: string }) => error.stdout ?? '',
  )

export const readAdvisories = async (): Promise<
  { readonly advisories: readonly Advisory[] } | { readonly unreachable: string }
> => {
  const text = await runAudit()
  const report = (text.trim() === '' ? {} : JSON.parse(text)) as AuditReport
  if (report.vulnerabilities !== undefined) return { advisories: advisoriesIn(report.vulnerabilities) }
  if (report.message !== undefined) return { unreachable: report.message }
  throw new StartupError(`npm audit failed: ${report.error?.summary ?? 'it printed no report'}`)
}

/** The advisories that nobody has accepted, or no longer. */
export const unacceptedOf = (
  advisories: readonly Advisory[],
  now: Date,
  accepted: readonly Accepted[] = ACCEPTED,
): readonly (Advisory & { readonly why: string })[] => {
  const today = now.toISOString().slice(0, 10)
  return advisories.flatMap(one => {
    const until = accepted.find(({ advisory }) => advisory === one.advisory)?.until
    if (until === undefined) return [{ ...one, why: 'not accepted' }]
    return until < today ? [{ ...one, why: `accepted until ${until} only` }] : []
  })
}
