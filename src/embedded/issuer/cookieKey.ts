import { randomBytes } from 'node:crypto'
import { issuerFolder, readOrCreatePrivate } from './privateFile.ts'

const FILE_NAME = 'cookie-key'
const KEY_BYTES = 32

/** Signs cookies and forms. Kept, so that a restart logs nobody out. Throws a StartupError when it cannot be had. */
export const loadCookieKey = async (dataDir: string): Promise<string> => {
  const generate = async (): Promise<string> => `${randomBytes(KEY_BYTES).toString('base64url')}\n`
  return (await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate)).trim()
}
