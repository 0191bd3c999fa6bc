import { Command } from 'commander'
import { readAddresses } from '../../src/addresses.ts'
import { readConfig } from '../../src/config.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'

type Options = { tenant: string; subject: string; scope: string; user?: boolean }

/** A token of the embedded issuer, alone on stdout. */
export const tokenCommand = new Command('token')
  .description('Prints an access token of the embedded issuer, for trying the API.')
  .requiredOption('--tenant <tenant>', 'the tenant that the token is for')
  .requiredOption('--subject <subject>', 'who calls')
  .requiredOption('--scope <scopes>', 'scopes, separated by spaces: "orders:read orders:write"')
  .option('--user', 'a user who delegated to the command line (15 minutes), not a workload (5 minutes)')
  .addHelpText('after', '\nThe service need not run. With OIDC_ISSUER set, ask that issuer instead.')
  .action(async ({ tenant, subject, scope, user = false }: Options) => {
    const config = readConfig()
    const running = await readAddresses(config.dataDir)
    const issuer = running?.issuer ?? `http://localhost:${config.port}/oauth`
    const scopes = scope.split(/\s+/).filter(Boolean)
    const { dataDir, audience } = config
    process.stdout.write(`${await mintDevToken({ dataDir, issuer, audience, tenant, subject, scopes, user })}\n`)
  })
