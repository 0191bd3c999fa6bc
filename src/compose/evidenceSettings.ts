import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Config } from '../settings/config.ts'
import { createFolders } from '../lib/folders.ts'
import { StartupError, systemCode } from '../lib/startupError.ts'
import { signingKeyFrom } from './signingKey.ts'

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700

/** Tries the settings of head signing, which is needed only later. Throws a StartupError that names one. */
export const checkEvidenceSettings = async (config: Pick<Config, 'evidence' | 'dataDir' | 'roles'>): Promise<void> => {
  const { signingKey, headsFile } = config.evidence
  if (!config.roles.includes('worker')) return
  if (signingKey !== undefined) await signingKeyFrom(config)
  // The data directory, which has the file by default, is not open yet.
  if (headsFile.startsWith(config.dataDir)) return
  try {
    await createFolders(dirname(headsFile), OWNER_ONLY_FOLDER)
    await (await open(headsFile, 'a', OWNER_ONLY_FILE)).close()
  } catch (error) {
    throw new StartupError(`EVIDENCE_HEADS_FILE=${headsFile} cannot be written (${systemCode(error)}).`, error)
  }
}
