const WINDOW_MS = 300_000
const PER_USER_MAX = 10
/** Higher than the limit per user, because many users may share an address. */
const PER_ADDRESS_MAX = 100

export type Attempt = { readonly username: string; readonly address: string }

export type LoginThrottle = {
  /** The seconds to wait, if any. An attempt counts as failed until its result is known; a refused one does not count. */
  readonly begin: (attempt: Attempt) => number | undefined
  /** The password was correct: the attempt and the user's earlier failures are no longer counted. */
  readonly succeed: (attempt: Attempt) => void
}

type Window = { failures: number; readonly max: number; readonly endsAtMs: number }

/** A window is never evicted early: an attacker could choose it. Each costs the hash of a password, so memory is bounded. */
export const createLoginThrottle = (monotonicNow: () => number = () => performance.now()): LoginThrottle => {
  /** In the order of their ends, because all have the same length. */
  const windows = new Map<string, Window>()

  const removeEnded = (): void => {
    for (const [key, { endsAtMs }] of windows) {
      if (endsAtMs > monotonicNow()) return
      windows.delete(key)
    }
  }

  const windowOf = (key: string, max: number): Window => {
    const window = windows.get(key) ?? { failures: 0, max, endsAtMs: monotonicNow() + WINDOW_MS }
    windows.set(key, window)
    return window
  }

  return {
    begin: ({ username, address }) => {
      removeEnded()
      const both = [windowOf(`user ${username}`, PER_USER_MAX), windowOf(`address ${address}`, PER_ADDRESS_MAX)]
      const full = both.filter(({ failures, max }) => failures >= max)
      if (full.length > 0) {
        const untilMs = Math.max(...full.map(({ endsAtMs }) => endsAtMs))
        return Math.max(1, Math.ceil((untilMs - monotonicNow()) / 1_000))
      }
      for (const window of both) window.failures++
      return undefined
    },
    succeed: ({ username, address }) => {
      windows.delete(`user ${username}`)
      const window = windows.get(`address ${address}`)
      if (window) window.failures = Math.max(0, window.failures - 1)
    },
  }
}
