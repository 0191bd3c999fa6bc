import { stat } from 'node:fs/promises'

/** Files whose changes by operators take effect without a restart. */

export type WatchedFile<T> = () => Promise<T>

/** Identifies the content: another file under the name, another content, or none. */
const stampOf = async (path: string): Promise<string> => {
  const file = await stat(path, { bigint: true }).catch(() => undefined)
  return file ? `${file.ino} ${file.mtimeNs} ${file.size}` : 'none'
}

/**
 * `read` may create the file, and reads it after each change. A failure is reported once and repeated at each call,
 * while the last valid content counts. Rejects if the first reading fails.
 */
export const openWatchedFile = async <T>(
  path: string,
  read: () => Promise<T>,
  onError: (error: unknown) => void,
): Promise<WatchedFile<T>> => {
  let value = await read()
  let stamp = ''
  let failedStamp: string | undefined
  return async () => {
    // The stamp is taken before reading, so a concurrent change is noticed the next time.
    const newStamp = await stampOf(path)
    if (newStamp === stamp) return value
    try {
      value = await read()
      stamp = newStamp
      failedStamp = undefined
    } catch (error) {
      if (newStamp !== failedStamp) onError(error)
      failedStamp = newStamp
    }
    return value
  }
}
