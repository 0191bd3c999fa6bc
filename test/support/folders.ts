import { rm } from 'node:fs/promises'

const RETRIES_MAX = 20
const RETRY_MS = 100

/** Removes a folder and everything in it; again, while a process that is ending still writes into it. */
export const removeFolder = (path: string): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: RETRIES_MAX, retryDelay: RETRY_MS })
