/** How often a login may fail before nobody is listened to for a while. Kept in memory: it is about minutes. */

const WINDOW_MS = 300_000
const PER_USER_MAX = 10
/** Of many people behind one address, some type wrongly. */
const PER_ADDRESS_MAX = 100
const KEYS_MAX = 10_000

export type Attempt = { readonly username: string; readonly address: string }

export type LoginThrottle = {
  /**
   * Seconds to wait when there were too many, else nothing. Counts the attempt as failed before it is known to be: a
   * hundred guesses at once are a hundred.
   */
  begin(attempt: Attempt): number | undefined
  /** It was the right password: the attempt was no failure, and those of the user before it are forgiven. */
  succeed(attempt: Attempt): void
}

type Window = { failures: number; readonly endsAt: number }

export const createLoginThrottle = (monotonicNow: () => number = () => performance.now()): LoginThrottle => {
  const windows = new Map<string, Window>()

  const windowOf = (key: string): Window => {
    const known = windows.get(key)
    if (known && known.endsAt > monotonicNow()) return known
    windows.delete(key)
    const oldest = windows.size >= KEYS_MAX ? windows.keys().next() : undefined
    if (oldest && !oldest.done) windows.delete(oldest.value)
    const fresh = { failures: 0, endsAt: monotonicNow() + WINDOW_MS }
    windows.set(key, fresh)
    return fresh
  }

  const keysOf = ({ username, address }: Attempt) => ({ user: `user ${username}`, address: `address ${address}` })

  return {
    begin: attempt => {
      const keys = keysOf(attempt)
      const [user, address] = [windowOf(keys.user), windowOf(keys.address)]
      const full = [
        user.failures >= PER_USER_MAX ? user : undefined,
        address.failures >= PER_ADDRESS_MAX ? address : undefined,
      ]
      const until = Math.max(...full.map(window => window?.endsAt ?? 0))
      if (until > 0) return Math.max(1, Math.ceil((until - monotonicNow()) / 1_000))
      user.failures++
      address.failures++
      return undefined
    },
    succeed: attempt => {
      const keys = keysOf(attempt)
      windows.delete(keys.user)
      const address = windows.get(keys.address)
      if (address) address.failures = Math.max(0, address.failures - 1)
    },
  }
}
