import { Command } from 'commander'
import { jsonCommand } from './print.ts'
import { list } from './projections/list.ts'
import { cancel, followAll, rebuild, rollback, verify } from './projections/rebuild.ts'
import { resetCommand } from './projections/reset.ts'

/** A command whose request a process of the service executes. */
const requested = (name: string, description: string): Command =>
  jsonCommand(name, description).option('--no-wait', 'print the id of the request at once')

export const projectionsCommand = new Command('projections')
  .description('The read models in Postgres, which are made from the log.')
  .addCommand(jsonCommand('list', 'Lists the read models, their positions and their newest rebuilds.').action(list))
  .addCommand(
    requested('rebuild', 'Builds new tables beside the live ones, compares them, and switches if they are equal.')
      .argument('<name...>', 'read models, by either name that `list` shows')
      .option('--accept-differences', 'switch the tables of the rebuild that was refused', false)
      .option('--reason <text>', 'why the difference is accepted; it is recorded')
      .action(rebuild),
  )
  .addCommand(
    requested('verify', 'Compares the tables with new ones from the log, and changes nothing.')
      .argument('[name...]', 'read models; all when absent')
      .action(verify),
  )
  .addCommand(
    requested('rollback', 'Puts the tables before the last rebuild back, with the events since.')
      .argument('<name>', 'a read model')
      .action(rollback),
  )
  .addCommand(
    jsonCommand('follow', 'Shows the progress of rebuilds that were requested.')
      .argument('<id...>', 'the ids of the requests')
      .action(followAll),
  )
  .addCommand(
    jsonCommand('cancel', 'Ends rebuilds, and drops their tables. The live tables stay.')
      .argument('<id...>', 'the ids of the requests')
      .action(cancel),
  )
  .addCommand(resetCommand)
  .addHelpText(
    'after',
    '\nA process of the service with the role projector executes the requests one after the other, also after a restart, from\n' +
      'the checkpoint of each. The service keeps running. Rows are compared by tenant at one position of the log; if they\n' +
      'differ, the first difference is shown and nothing is switched. The replaced tables are kept, in the schema\n' +
      'ledger_previous, until the next rebuild. Every request is an audit record of the tenant ledger.\n' +
      'Exit code 1 if a rebuild was refused, failed or cancelled, or a verification found a difference.\n' +
      '\nExamples:\n' +
      '  npm run -s ledger -- projections verify\n' +
      '  npm run -s ledger -- projections rebuild invoices payments\n' +
      '  npm run -s ledger -- projections rebuild invoices --accept-differences --reason "defect 4711 is corrected"\n' +
      '  npm run -s ledger -- projections rollback invoices',
  )
