import { randomBytes } from 'node:crypto'
import { issuerFolder, readOrCreatePrivate } from './privateFile.ts'

const FILE_NAME = 'cookie-key'
const KEY_BYTES = 32

/**
 * The key that signs cookies and forms. Stored, so a restart ends no session. Throws a StartupError if it cannot
 * be read or created.
 */
export const loadCookieKey = async (dataDir: string): Promise<string> => {
  const generate = async (): Promise<string> => `${randomBytes(KEY_BYTES).toString('base64url')}\n`
  return (await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate)).trim()
}
