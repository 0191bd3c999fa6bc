import { randomUUID } from 'node:crypto'
import { importJWK, SignJWT } from 'jose'
import { loadSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import type { TestService } from './service.ts'

const HOUR_SECONDS = 3_600
const LIFETIME_SECONDS = 300

/** An expired token of the service's own issuer. */
export const expiredToken = async ({ dataDir, addresses }: TestService, tenant: string): Promise<string> => {
  const key = await loadSigningKey(dataDir)
  const issuedAt = Math.floor(Date.now() / 1000) - HOUR_SECONDS
  return new SignJWT({ client_id: 'tester', tenant, scope: 'orders:read' })
    .setProtectedHeader({ typ: 'at+jwt', alg: key.alg, kid: key.kid })
    .setIssuer(addresses.issuer)
    .setAudience('payment-ledger')
    .setSubject('tester')
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .sign(await importJWK(key, key.alg))
}
