import type { DenyAccess } from '../../streams/access/index.ts'
import { chargedTenant } from './quotas/byteQuota.ts'
import { recordAuditedDecision } from './recordAuditedDecision.ts'
import type { Context, Ledger } from './commandHandler.ts'

/** Audit records of refusals, counted per caller, so one that is refused again and again cannot fill the log. */

const WINDOW_MS = 10_000
/** The first refusals get a record each. Those that follow are counted, until a window passes without any. */
export const DENIALS_RECORDED_EACH_MAX = 20

export type Denial = Omit<DenyAccess, 'type' | 'count'>

export type Denials = {
  /**
   * The first refusals are durable when this resolves; further ones are recorded as a number at the end of the window.
   * Throws Unavailable and QuotaExceeded, which must then be the answer instead of the refusal.
   */
  readonly record: (denial: Denial, context: Context) => Promise<void>
  /** Records the refusals that are only counted so far. Nothing is left to record when this resolves. */
  readonly close: () => Promise<void>
}

/** Denials that differ in the resource alone. The record names the resource when all have the same. */
type Counted = { denial: Denial; context: Context; count: number }
type Caller = { recorded: number; readonly kinds: Map<string, Counted> }

const write = (ledger: Ledger, { denial, context, count }: Counted): Promise<void> =>
  recordAuditedDecision(ledger, { type: 'DenyAccess', ...denial, ...(count > 1 ? { count } : {}) }, context)

const flush = async (ledger: Ledger, { kinds }: Caller, onFailure: (error: unknown) => void): Promise<void> => {
  for (const [key, counted] of [...kinds]) {
    kinds.delete(key)
    await write(ledger, counted).catch((error: unknown) => {
      onFailure(error)
      add(kinds, key, counted)
    })
  }
}

/**
 * `onFailure`: a count could not be recorded, and is kept. Long because its functions share the callers of one process.
 */
export const createDenials = (ledger: Ledger, onFailure: (error: unknown) => void): Denials => {
  const callers = new Map<string, Caller>()
  const watches = new Set<Promise<void>>()
  const closing = new AbortController()

  /** Records the counts of a caller after each window, and forgets the caller after a window without counts. */
  const watch = async (name: string, caller: Caller): Promise<void> => {
    for (;;) {
      await ledger.world.sleep(WINDOW_MS, closing.signal)
      if (closing.signal.aborted) return
      // No await between the check and the deletion, so no refusal is counted for a forgotten caller.
      if (caller.kinds.size === 0) return void callers.delete(name)
      await flush(ledger, caller, onFailure)
    }
  }

  const open = (name: string): Caller => {
    const caller: Caller = { recorded: 0, kinds: new Map() }
    callers.set(name, caller)
    const watching = watch(name, caller).finally(() => watches.delete(watching))
    watches.add(watching)
    return caller
  }

  return {
    record: async (denial, request) => {
      const { tenant, subject, client, quota } = request
      await ledger.byteQuota.check(chargedTenant(request), 'audit_record')
      // From here on nothing is refused: what is counted now is recorded later.
      const context: Context = { ...request, quota: { ...quota, use: 'completion' } }
      const name = JSON.stringify([tenant, subject, client, quota?.tenant])
      const caller = callers.get(name) ?? open(name)
      if (caller.recorded < DENIALS_RECORDED_EACH_MAX) {
        caller.recorded++
        return write(ledger, { denial, context, count: 1 })
      }
      const { operation, check, code } = denial
      add(caller.kinds, JSON.stringify([operation, check, code]), { denial, context, count: 1 })
    },
    close: async () => {
      closing.abort()
      await Promise.all(watches)
      for (const caller of callers.values()) await flush(ledger, caller, onFailure)
    },
  }
}

const add = (kinds: Map<string, Counted>, key: string, { denial, context, count }: Counted): void => {
  const entry = kinds.get(key)
  if (entry === undefined) {
    kinds.set(key, { denial, context, count })
    return
  }
  if (entry.denial.resource !== denial.resource) entry.denial = { ...entry.denial, resource: null }
  entry.context = context
  entry.count += count
}
