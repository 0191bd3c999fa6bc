/** How often a login may fail before further attempts are refused for a while. */

export const WINDOW_SECONDS = 300
export const PER_USER_MAX = 10
/** Of many people behind one address, some type wrongly. */
export const PER_ADDRESS_MAX = 100

export type Attempt = { readonly username: string; readonly address: string }

export type LoginThrottle = {
  /**
   * Seconds to wait when there were too many, else nothing. Counts the attempt as failed before it is known to be: a
   * hundred guesses at once are a hundred. An attempt that is refused is not counted.
   */
  begin(attempt: Attempt): Promise<number | undefined>
  /** It was the right password: the attempt was no failure, and those of the user before it are forgiven. */
  succeed(attempt: Attempt): Promise<void>
}

export const keysOf = ({ username, address }: Attempt) => ({ user: `user ${username}`, address: `address ${address}` })

type Window = { failures: number; readonly endsAtMs: number }

const WINDOW_MS = WINDOW_SECONDS * 1_000

/**
 * For an issuer without a database. A window ends with its time and is never evicted before: an attacker who tries other
 * names would choose what is evicted. The memory is bounded all the same, because each window costs the hashing of a
 * password, of which this process does some tens in a second.
 */
export const createMemoryLoginThrottle = (monotonicNow: () => number = () => performance.now()): LoginThrottle => {
  /** In the order of their ends, because all are equally long. */
  const windows = new Map<string, Window>()

  const removeEnded = (): void => {
    for (const [key, { endsAtMs }] of windows) {
      if (endsAtMs > monotonicNow()) return
      windows.delete(key)
    }
  }

  const windowOf = (key: string): Window => {
    const known = windows.get(key)
    if (known) return known
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
