import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreatePrivate } from './issuer/privateFile.ts'
import { StartupError } from '../startupError.ts'

const FOLDER = 'api-keys'
const FILE_NAME = 'pepper'
const PEPPER_BYTES = 32
const PEPPER = /^[\w-]{43}\n$/

const generate = async (): Promise<string> => `${randomBytes(PEPPER_BYTES).toString('base64url')}\n`

/**
 * The pepper of this data directory's API keys, made at first use; in a file of its owner's alone and not in the database,
 * so that a dump of the one is worth nothing without the other. Throws a StartupError when it cannot be had.
 */
export const loadApiKeyPepper = async (dataDir: string): Promise<string> => {
  const content = await readOrCreatePrivate(join(dataDir, FOLDER), FILE_NAME, generate)
  // Half a pepper would be as good as none, and would end every key without a word.
  if (!PEPPER.test(content))
    throw new StartupError(
      `The data directory's ${FOLDER}/${FILE_NAME} is damaged. Put it back, or remove it: another one is made, and every API key ends.`,
    )
  return content.trimEnd()
}
