import type { Caller } from '../http.ts'

/** The users of the service in a run. */
export const CALLERS: readonly Caller[] = [
  { tenant: 'acme', subject: 'alice' },
  { tenant: 'acme', subject: 'bob' },
  { tenant: 'globex', subject: 'carol' },
]

/** One caller of each tenant. */
export const TENANT_CALLERS: readonly Caller[] = [...new Map(CALLERS.map(caller => [caller.tenant, caller])).values()]
