import { Command } from 'commander'
import { tokenCommand } from './ledger/token.ts'

/** The operators' and auditors' command line: `npm run ledger -- <command>`. */

await new Command('ledger')
  .description('Commands for those who run and audit the ledger.')
  .addCommand(tokenCommand)
  .parseAsync()
