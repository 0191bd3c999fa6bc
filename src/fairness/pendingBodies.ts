import type { Account } from './account.ts'

/**
 * The bodies of requests that have not arrived yet. A new one is always accepted: when there is no memory for it, the
 * tenant with the most, and of its callers the one with the most, gives up its oldest. Nearly all bodies arrive
 * together with their heads, and are never refused because of bodies that do not arrive.
 */

const BODIES_MAX = 1_000
const BODIES_MAX_BYTES = 32 * 1024 * 1024

type PendingBody = { readonly bytes: number; readonly giveUp: () => void }

export type PendingBodies = {
  /** Registers a body of at most `bytes`; `giveUp` is called when its memory is needed. Returns its removal. */
  readonly add: (account: Account, body: PendingBody) => () => void
}

type Registered = PendingBody & { readonly account: Account }

const largestGroup = (bodies: readonly Registered[], keyOf: (body: Registered) => string): readonly Registered[] =>
  [...Map.groupBy(bodies, keyOf).values()].reduce((one, other) => (other.length > one.length ? other : one), [])

export const createPendingBodies = (max = BODIES_MAX, maxBytes = BODIES_MAX_BYTES): PendingBodies => {
  const pending = new Set<Registered>()
  let bytes = 0

  const remove = (body: Registered): void => {
    if (pending.delete(body)) bytes -= body.bytes
  }

  const giveUpOne = (): void => {
    const ofTenant = largestGroup([...pending], ({ account }) => account.tenant)
    const [oldest] = largestGroup(ofTenant, ({ account }) => account.caller)
    if (oldest === undefined) return
    remove(oldest)
    oldest.giveUp()
  }

  return {
    add: (account, body) => {
      while (pending.size > 0 && (pending.size + 1 > max || bytes + body.bytes > maxBytes)) giveUpOne()
      const registered = { ...body, account }
      pending.add(registered)
      bytes += body.bytes
      return () => remove(registered)
    },
  }
}
