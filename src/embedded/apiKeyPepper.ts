import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreatePrivate } from './privateFile.ts'
import { StartupError } from '../lib/startupError.ts'

/** The pepper of API keys where API_KEY_PEPPER is not set. */

const FOLDER = 'api-keys'
const FILE_NAME = 'pepper'
const PEPPER_BYTES = 32
const PEPPER = /^[\w-]{43}\n$/

const generate = async (): Promise<string> => `${randomBytes(PEPPER_BYTES).toString('base64url')}\n`

/**
 * The pepper of this data directory's API keys, created at first use. It is in a private file instead of the database,
 * so that a dump of one is worthless without the other. Throws a StartupError if it cannot be read or created.
 */
export const loadApiKeyPepper = async (dataDir: string): Promise<string> => {
  const content = await readOrCreatePrivate(join(dataDir, FOLDER), FILE_NAME, generate)
  // A truncated pepper would silently invalidate every key.
  if (!PEPPER.test(content))
    throw new StartupError(
      `The data directory's ${FOLDER}/${FILE_NAME} is damaged. Put it back, or remove it: a new one is created, and every existing API key becomes invalid.`,
    )
  return content.trimEnd()
}
