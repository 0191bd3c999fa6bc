import type { Addresses } from '../../src/compose/addressesFile.ts'
import type { Config } from '../../src/settings/config.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { createLedgerClient } from '../client/src/index.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { Identities } from './planExecution.ts'
import { renewing } from './tokens.ts'

export const TENANT = 'chinook'

const CLERK = {
  subject: 'demo-clerk',
  scopes: [
    'orders:write',
    'orders:read',
    'invoices:write',
    'invoices:read',
    'payments:write',
    'payments:read',
    'payments:refund',
    'events:read',
    'exports:read',
    'ledger:read',
  ],
}
const APPROVER = { subject: 'demo-approver', scopes: ['invoice:approve', 'invoices:read'] }

/** Longer than the minute of a rate limit, so that consecutive runs succeed, only later. */
const RETRIES = { attemptsMax: 100, deadlineMs: 75_000 }

/** Throws a StartupError for an external issuer. */
export const requireEmbeddedIssuer = ({ api, issuer }: Addresses): void => {
  if (issuer !== `${api}/oauth`)
    throw new StartupError(
      `The service believes the issuer ${issuer}, and the demo can make tokens of the embedded one only: ` +
        'run it with another LEDGER_DATA_DIR and without OIDC_ISSUER.',
    )
}

/** Two workloads of the tenant, with tokens signed by the key of the embedded issuer in the data directory. */
export const identitiesOf = (
  config: Config,
  { api, issuer }: Pick<Addresses, 'api' | 'issuer'>,
  signal: AbortSignal,
): Identities => {
  const { dataDir, audience } = config
  const clientOf = ({ subject, scopes }: typeof CLERK) => {
    const grant = { dataDir, issuer, audience, tenant: TENANT, subject, scopes, user: false }
    return createLedgerClient({ baseUrl: api, token: renewing(() => mintDevToken(grant)), retry: RETRIES, signal })
  }
  return { clerk: clientOf(CLERK), approver: clientOf(APPROVER) }
}
