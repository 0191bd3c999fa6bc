import { Command } from 'commander'
import { USER_LIFETIME_SECONDS, WORKLOAD_LIFETIME_SECONDS } from '../../src/embedded/issuer/lifetimes.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { jsonOption, print, printJson } from './print.ts'
import { embeddedIssuerFor } from './apiClient.ts'

type Options = { tenant: string; subject: string; scope: string; user: boolean; json: boolean }

const SCOPES_IN_LINE = 4

const scopeLines = (): string =>
  Array.from(
    { length: Math.ceil(SCOPES.length / SCOPES_IN_LINE) },
    (_, line) => `  ${SCOPES.slice(line * SCOPES_IN_LINE, (line + 1) * SCOPES_IN_LINE).join('  ')}`,
  ).join('\n')

export const tokenCommand = new Command('token')
  .description('Prints an access token of the embedded issuer, for trying the API.')
  .requiredOption('--tenant <tenant>', 'the tenant of the token')
  .requiredOption('--subject <subject>', 'the subject (sub) of the token')
  .requiredOption('--scope <scopes>', 'scopes, separated by spaces: "orders:read orders:write"')
  .option('--user', 'a token of a user (15 minutes) instead of one of a workload (5 minutes)', false)
  .addOption(
    jsonOption('print JSON, as a token endpoint does (RFC 6749): {access_token, token_type, expires_in, scope}'),
  )
  .addHelpText(
    'after',
    `\nThe service has to run, with its embedded issuer. With OIDC_ISSUER, get tokens from that issuer.\n\nScopes:\n${scopeLines()}`,
  )
  .action(async ({ tenant, subject, scope, user, json }: Options) => {
    const scopes = scope.split(/\s+/).filter(Boolean)
    const mint = await embeddedIssuerFor({ tenant, subject, scopes, user })
    const token = await mint()
    const expires_in = user ? USER_LIFETIME_SECONDS : WORKLOAD_LIFETIME_SECONDS
    if (json) printJson({ access_token: token, token_type: 'Bearer', expires_in, scope: scopes.join(' ') })
    else print(token)
  })
