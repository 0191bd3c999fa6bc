/** An attack that keeps every rate limit of its callers. It runs in a process of its own. */

export type Target = {
  readonly api: string
  /** Tokens with every scope, of as many users of the tenant that attacks. */
  readonly tokens: readonly string[]
  /** The service's Postgres, for rows that would take too long to make through the API. */
  readonly databaseUrl: string
}

export type Attack = {
  readonly name: string
  /** Makes what the attack needs, such as rows or files, before anything is measured. */
  readonly prepare?: (target: Target) => Promise<void>
  /** Attacks until the signal aborts. Resolves to the number of outcomes of each kind, for the report. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<Readonly<Record<string, number>>>
}

export const ATTACKING_TENANT = 'greedy'
