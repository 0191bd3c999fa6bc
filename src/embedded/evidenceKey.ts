import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { StartupError } from '../lib/startupError.ts'
import { readOrCreatePrivate } from './privateFile.ts'

const FOLDER = 'evidence'
const FILE_NAME = 'signing-key.pem'

const generate = async (): Promise<string> =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()

/** An Ed25519 key in PKCS#8: PEM, or the base64 of DER. Throws without the text, which is a secret. */
export const parseEvidenceKey = (text: string): KeyObject => {
  const key = text.includes('-----BEGIN')
    ? createPrivateKey(text)
    : createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' })
  if (key.asymmetricKeyType !== 'ed25519') throw new TypeError('The key is not an Ed25519 key.')
  return key
}

export const evidenceFolder = (dataDir: string): string => join(dataDir, FOLDER)

/** Where EVIDENCE_SIGNING_KEY is not set: in a private file, so no writer of the database can sign. Throws a StartupError. */
export const loadEvidenceKey = async (dataDir: string): Promise<KeyObject> => {
  const text = await readOrCreatePrivate(evidenceFolder(dataDir), FILE_NAME, generate)
  try {
    return parseEvidenceKey(text)
  } catch {
    throw new StartupError(
      `The data directory's ${FOLDER}/${FILE_NAME} is not an Ed25519 key. Put it back from a backup; with another key ` +
        'auditors must be told its fingerprint.',
    )
  }
}
