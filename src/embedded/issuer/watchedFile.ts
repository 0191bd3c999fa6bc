import { stat } from 'node:fs/promises'

/** Files whose changes by operators take effect without a restart. */

/** The maximal delay until an edit is seen, and the interval at which the file is checked at most. */
const CHECK_EVERY_MS = 1_000

/** The present content of a file that operators may change while the issuer runs. */
export type WatchedFile<T> = {
  readonly current: () => Promise<T>
  /**
   * The content as of this call, without the delay: for a reader who must know the latest change of another process.
   */
  readonly latest: () => Promise<T>
}

/** Identifies the content: another file under the name, another content, or none. */
const stampOf = async (path: string): Promise<string> => {
  const file = await stat(path, { bigint: true }).catch(() => undefined)
  return file ? `${file.ino} ${file.mtimeNs} ${file.size}` : 'none'
}

/**
 * Reads the file with `read`, which may create it, and again after each change. A failed reading is repeated at each check
 * and reported once, and the last valid content stays in effect, so a typing error does not end every session. Rejects
 * with the error of `read` if the first reading fails. Long because its functions share the state of one file.
 */
export const openWatchedFile = async <T>(
  path: string,
  read: () => Promise<T>,
  onError: (error: unknown) => void,
): Promise<WatchedFile<T>> => {
  let value = await read()
  let stamp = ''
  let failedStamp: string | undefined
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let checking: Promise<void> | undefined

  const check = async (): Promise<void> => {
    checkedAtMs = performance.now()
    // The stamp is taken before reading, so a concurrent change is noticed the next time.
    const newStamp = await stampOf(path)
    if (newStamp === stamp) return
    try {
      value = await read()
      stamp = newStamp
      failedStamp = undefined
    } catch (error) {
      if (newStamp !== failedStamp) onError(error)
      failedStamp = newStamp
    }
  }

  const begin = (): Promise<void> =>
    (checking ??= check().finally(() => {
      checking = undefined
    }))

  return {
    current: async () => {
      if (performance.now() - checkedAtMs >= CHECK_EVERY_MS) void begin()
      await checking
      return value
    },
    latest: async () => {
      // The check in flight may have begun before the change; calls that wait for it share the next one.
      await checking
      await begin()
      return value
    },
  }
}
