import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreatePrivate } from './privateFile.ts'
import { StartupError } from '../lib/startupError.ts'

const FOLDER = 'api-keys'
const FILE_NAME = 'pepper'
const PEPPER_BYTES = 32
const PEPPER = /^[\w-]{43}\n$/

const generate = async (): Promise<string> => `${randomBytes(PEPPER_BYTES).toString('base64url')}\n`

/** Without API_KEY_PEPPER: in a private file, so a dump of the database is worthless alone. Throws a StartupError. */
export const loadApiKeyPepper = async (dataDir: string): Promise<string> => {
  const content = await readOrCreatePrivate(join(dataDir, FOLDER), FILE_NAME, generate)
  // A truncated pepper would silently invalidate every key.
  if (!PEPPER.test(content))
    throw new StartupError(
      `The data directory's ${FOLDER}/${FILE_NAME} is damaged. Put it back, or remove it: a new one is created, and every existing API key becomes invalid.`,
    )
  return content.trimEnd()
}
