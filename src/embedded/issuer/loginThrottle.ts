/** Limits of failed logins, per user and per address. */

export const WINDOW_SECONDS = 300
export const PER_USER_MAX = 10
/** Higher than the limit per user, because many users may share an address. */
export const PER_ADDRESS_MAX = 100

export type Attempt = { readonly username: string; readonly address: string }

export type LoginThrottle = {
  /**
   * Resolves to the seconds to wait if there were too many attempts, else to nothing. The attempt is counted as failed
   * before its result is known, so concurrent guesses are all counted. A refused attempt is not counted.
   */
  begin(attempt: Attempt): Promise<number | undefined>
  /** The password was correct: the attempt and the user's earlier failures are no longer counted. */
  succeed(attempt: Attempt): Promise<void>
}

export const keysOf = ({ username, address }: Attempt) => ({ user: `user ${username}`, address: `address ${address}` })

type Window = { failures: number; readonly endsAtMs: number }

const WINDOW_MS = WINDOW_SECONDS * 1_000

/**
 * For an issuer without a database. A window is never evicted before its end, because an attacker could choose the
 * evicted one by trying other names. Memory is bounded all the same, since each window costs the hashing of a password,
 * of which a process can do some tens per second. Long because the windows and their eviction share one map.
 */
export const createMemoryLoginThrottle = (monotonicNow: () => number = () => performance.now()): LoginThrottle => {
  /** In the order of their ends, because all have the same length. */
  const windows = new Map<string, Window>()

  const removeEnded = (): void => {
    for (const [key, { endsAtMs }] of windows) {
      if (endsAtMs > monotonicNow()) return
      windows.delete(key)
    }
  }

  const windowOf = (key: string): Window => {
    const current = windows.get(key)
    if (current) return current
    const fresh = { failures: 0, endsAtMs: monotonicNow() + WINDOW_MS }
    windows.set(key, fresh)
    return fresh
  }

  return {
    begin: async attempt => {
      removeEnded()
      const keys = keysOf(attempt)
      const [user, address] = [windowOf(keys.user), windowOf(keys.address)]
      const full = [
        ...(user.failures >= PER_USER_MAX ? [user] : []),
        ...(address.failures >= PER_ADDRESS_MAX ? [address] : []),
      ]
      if (full.length > 0) {
        const untilMs = Math.max(...full.map(({ endsAtMs }) => endsAtMs))
        return Math.max(1, Math.ceil((untilMs - monotonicNow()) / 1_000))
      }
      user.failures++
      address.failures++
      return undefined
    },
    succeed: async attempt => {
      const keys = keysOf(attempt)
      windows.delete(keys.user)
      const address = windows.get(keys.address)
      if (address) address.failures = Math.max(0, address.failures - 1)
    },
  }
}
