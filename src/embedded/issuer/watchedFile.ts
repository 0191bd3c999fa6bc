import { stat } from 'node:fs/promises'

/** The maximal delay after an edit, which also limits how often the disk is read. */
const LOOK_EVERY_MS = 1_000

/** The present content of a file that operators may change while the issuer runs. */
export type WatchedFile<T> = { readonly current: () => Promise<T> }

/** Identifies the content: another file under the name, another content, or none. */
const stampOf = async (path: string): Promise<string> => {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found ? `${found.ino} ${found.mtimeNs} ${found.size}` : 'none'
}

/**
 * Reads the file with `read`, which may create it, and again after each change. A failed reading is reported once, and
 * the last valid content stays in effect, so that a typing error does not end every session. Rejects with the error of
 * `read` if the first reading fails.
 */
export const openWatchedFile = async <T>(
  path: string,
  read: () => Promise<T>,
  onError: (error: unknown) => void,
): Promise<WatchedFile<T>> => {
  let value = await read()
  let stamp = ''
  let lookedAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  const look = async (): Promise<void> => {
    lookedAt = performance.now()
    // Taken before reading, so that a concurrent change is noticed the next time.
    const found = await stampOf(path)
    if (found === stamp) return
    stamp = found
    try {
      value = await read()
    } catch (error) {
      onError(error)
    }
  }

  return {
    current: async () => {
      if (performance.now() - lookedAt >= LOOK_EVERY_MS) {
        looking ??= look().finally(() => {
          looking = undefined
        })
      }
      await looking
      return value
    },
  }
}
