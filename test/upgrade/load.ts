import { setTimeout as sleep } from 'node:timers/promises'
import { createLedgerClient, type LedgerClient } from '../../scripts/client/src/index.ts'
import { type PlannedInvoice, planOf, WHOLE_PAGES } from '../../scripts/demo/plan.ts'
import { type Identities, type InvoiceRun, runPlan } from '../../scripts/demo/planExecution.ts'
import { sources } from '../../scripts/demo/sources.ts'
import { renewing } from '../../scripts/demo/tokens.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { followEvents, type Requests } from './requests.ts'
import { AUDIENCE } from './servers.ts'

/** The load of a rehearsal: the invoices of the demo, again and again with other keys, lists, and an event stream. */

const TENANT = 'upgrade'

export type Load = {
  readonly clerk: LedgerClient
  /** A token with every scope of the tenant. */
  readonly token: () => Promise<string>
  readonly plan: readonly PlannedInvoice[]
  readonly runs: readonly InvoiceRun[]
  /** The ids of the facts that the event stream delivered, in order. */
  readonly streamed: { readonly ids: readonly string[]; readonly connections: number }
  /** Rejects with the first error, and never resolves. */
  readonly failed: Promise<never>
  /** Resolves when the last invoices are done. Rejects with the first error. */
  readonly end: () => Promise<void>
  /** Ends the event stream. */
  readonly endStream: () => Promise<void>
}

export type LoadOptions = {
  readonly requests: Requests
  readonly issuer: string
  readonly dataDir: string
  readonly signal: AbortSignal
}

const INVOICES_PER_ROUND = 20
const ofRound = sources.slice(0, INVOICES_PER_ROUND)
const ROUND_EVERY_MS = 4_000
const LISTS_EVERY_MS = 500
/** Clients outlast a restart. */
const RETRIES = { attemptsMax: 100, deadlineMs: 120_000 }

const tokenOf = (subject: string, { issuer, dataDir }: LoadOptions): (() => Promise<string>) => {
  const grant = { dataDir, issuer, audience: AUDIENCE, tenant: TENANT, subject, scopes: SCOPES, user: false }
  return renewing(() => mintDevToken(grant))
}

const identitiesOf = (options: LoadOptions): Identities => {
  const clientOf = (subject: string): LedgerClient =>
    createLedgerClient({
      baseUrl: 'http://localhost',
      token: tokenOf(subject, options),
      retry: RETRIES,
      signal: options.signal,
      fetch: options.requests.fetch,
    })
  return { clerk: clientOf('clerk'), approver: clientOf('approver') }
}

export const startLoad = async (options: LoadOptions): Promise<Load> => {
  const callers = identitiesOf(options)
  const { signal } = options
  const plan: PlannedInvoice[] = []
  const runs: InvoiceRun[] = []
  let isOver = false
  /** The numbers of the invoices, which keys and references are made of, differ from round to round. */
  const trade = async (): Promise<void> => {
    for (let round = 1; !isOver; round += 1) {
      const nextMs = performance.now() + ROUND_EVERY_MS
      const planned = planOf(ofRound.map((source, n) => ({ ...source, invoice: round * INVOICES_PER_ROUND + n })))
      const { runs: done } = await runPlan(callers, planned, () => undefined)
      plan.push(...planned)
      runs.push(...done)
      await sleep(Math.max(0, nextMs - performance.now()), undefined, { signal })
    }
  }
  const readLists = async (): Promise<void> => {
    while (!isOver) {
      for (const list of ['GET /orders', 'GET /invoices', 'GET /payments'] as const)
        await callers.clerk.request(list, WHOLE_PAGES)
      await sleep(LISTS_EVERY_MS, undefined, { signal })
    }
  }
  const endOfStream = new AbortController()
  const streamSignal = AbortSignal.any([signal, endOfStream.signal])
  const token = tokenOf('follower', options)
  const { followed, ended } = followEvents(options.requests, token, streamSignal)
  const working = Promise.all([trade(), readLists()])
  const failed = working.then(() => new Promise<never>(() => undefined))
  failed.catch(() => undefined)
  return {
    clerk: callers.clerk,
    token,
    plan,
    runs,
    streamed: followed,
    failed,
    end: async () => {
      isOver = true
      await working
    },
    endStream: () => {
      endOfStream.abort()
      return ended
    },
  }
}
