import type { Config } from '../settings/config.ts'
import { loadEvidenceKey, parseEvidenceKey } from '../embedded/evidenceKey.ts'
import { type SigningKey, signingKeyOf } from '../evidence/heads.ts'
import { StartupError } from '../lib/startupError.ts'

/** Without a key in production the log is not signed, and everything else works. */
export const hasSigningKey = ({ signingKey, inProduction }: Config['evidence']): boolean =>
  signingKey !== undefined || !inProduction

/** The configured key, or outside production that of the data directory. Throws a StartupError. */
export const signingKeyFrom = async ({
  evidence,
  dataDir,
}: Pick<Config, 'evidence' | 'dataDir'>): Promise<SigningKey> => {
  const { signingKey, inProduction } = evidence
  if (signingKey === undefined && inProduction)
    throw new StartupError(
      'EVIDENCE_SIGNING_KEY is not set, so no head can be signed: set it, see scripts/ledger/OPERATING.md.',
    )
  if (signingKey === undefined) return signingKeyOf(await loadEvidenceKey(dataDir))
  try {
    return signingKeyOf(parseEvidenceKey(signingKey))
  } catch {
    // Without the cause, because a parser's message may quote the key.
    throw new StartupError(
      'EVIDENCE_SIGNING_KEY is not valid: expected an Ed25519 key in PKCS#8, as PEM or as base64 of DER, as ' +
        '`openssl genpkey -algorithm ed25519` makes one.',
    )
  }
}
