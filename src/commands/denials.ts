import type { DenyAccess } from '../../streams/access/index.ts'
import { recordAccess } from './access.ts'
import type { Context, Ledger } from './handle.ts'

/** Records of refusals, as few as tell all of it: a caller that is refused again and again must not fill the log. */

const WINDOW_MS = 10_000
/** So many of one caller have a record each; those that follow are counted. */
const RECORDED_EACH_MAX = 20

export type Denial = Omit<DenyAccess, 'type' | 'count'>

export type Denials = {
  /**
   * The first ones are durable when this resolves. Of a caller that is refused more often the number is recorded, at the
   * end of each window, by operation, check and code. Throws Unavailable: what cannot be recorded must not be let pass.
   */
  readonly record: (denial: Denial, context: Context) => Promise<void>
  /** Records what is only counted yet. */
  readonly close: () => Promise<void>
}

/** Denials that say the same but for the resource, which is named when it is one alone. */
type Kind = { denial: Denial; context: Context; count: number }
type Caller = { recorded: number; readonly kinds: Map<string, Kind> }

/** `onFailure` is told when a number could not be recorded; it is kept, and tried again after another window. */
export const createDenials = (ledger: Ledger, onFailure: (error: unknown) => void): Denials => {
  const callers = new Map<string, Caller>()
  const closing = new AbortController()

  const write = ({ denial, count }: Omit<Kind, 'context'>, context: Context): Promise<void> =>
    recordAccess(ledger, { type: 'DenyAccess', ...denial, ...(count > 1 ? { count } : {}) }, context)

  /** Records the numbers of this caller. Returns whether there were none. */
  const flush = async ({ kinds }: Caller): Promise<boolean> => {
    const counted = [...kinds]
    for (const [key, kind] of counted) {
      kinds.delete(key)
      await write(kind, kind.context).catch((error: unknown) => {
        onFailure(error)
        add(kinds, key, kind)
      })
    }
    return counted.length === 0
  }

  /** The caller is forgotten after a window without anything to count. */
  const watch = async (name: string, caller: Caller): Promise<void> => {
    do await ledger.world.sleep(WINDOW_MS, closing.signal)
    while (!closing.signal.aborted && !(await flush(caller)))
    if (!closing.signal.aborted) callers.delete(name)
  }

  const open = (name: string): Caller => {
    const caller: Caller = { recorded: 0, kinds: new Map() }
    callers.set(name, caller)
    void watch(name, caller)
    return caller
  }

  return {
    record: async (denial, context) => {
      const { tenant, subject, client } = context
      const name = JSON.stringify([tenant, subject, client])
      const caller = callers.get(name) ?? open(name)
      if (caller.recorded < RECORDED_EACH_MAX) {
        caller.recorded++
        return write({ denial, count: 1 }, context)
      }
      const { operation, check, code } = denial
      add(caller.kinds, JSON.stringify([operation, check, code]), { denial, context, count: 1 })
    },
    close: async () => {
      closing.abort()
      for (const caller of callers.values()) await flush(caller)
    },
  }
}

const add = (kinds: Map<string, Kind>, key: string, { denial, context, count }: Kind): void => {
  const known = kinds.get(key)
  if (known === undefined) {
    kinds.set(key, { denial, context, count })
    return
  }
  if (known.denial.resource !== denial.resource) known.denial = { ...known.denial, resource: null }
  known.context = context
  known.count += count
}
