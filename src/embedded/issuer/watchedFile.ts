import { stat } from 'node:fs/promises'

/** An edit is seen this much later at most, and a busy issuer asks the disk no more often. */
const LOOK_EVERY_MS = 1_000

/** What a file holds, as it is now: operators change it while the issuer runs. */
export type LivingFile<T> = { readonly current: () => Promise<T> }

/** Another file under the name, or another content, or none: nothing else needs to be read again. */
const stampOf = async (path: string): Promise<string> => {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found ? `${found.ino} ${found.mtimeNs} ${found.size}` : 'none'
}

/**
 * Reads the file with `read`, which may create it, and again when it has changed. What cannot be read then is told once,
 * and the last content that could goes on counting: a typing error must not log everybody out.
 * Rejects with the error of `read` when the first reading fails.
 */
export const openLivingFile = async <T>(
  path: string,
  read: () => Promise<T>,
  onError: (error: unknown) => void,
): Promise<LivingFile<T>> => {
  let value = await read()
  let stamp = ''
  let lookedAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  const look = async (): Promise<void> => {
    lookedAt = performance.now()
    // Taken before the reading, so that a change that comes during it is noticed the next time.
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
