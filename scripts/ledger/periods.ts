import { Command } from 'commander'
import { periodEntity } from '../../src/commands/entities.ts'
import { type Closed, closePeriod, periodIdOf } from '../../src/commands/periods.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import type { Sql } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { BOOKS } from '../../projections/books/projection.ts'
import { endOfDay } from '../../projections/closings.ts'
import { checkedTenant, operatorContext } from './operatorContext.ts'
import { jsonOption, print, printJson } from './print.ts'
import { withLedger, withStores } from './stores.ts'
import { printTable } from './table.ts'

type Options = { readonly tenant: string; readonly json: boolean }
type CloseOptions = Options & { readonly through: string; readonly reason: string; readonly dryRun: boolean }

const notOver = (through: string): string => `${through} is not over yet (in UTC).`

/** A day that exists and is over by the clock of this machine. */
const checkedDay = (text: string): string => {
  const exists = /^\d{4}-\d{2}-\d{2}$/.test(text) && JSON.stringify(new Date(`${text}T00:00:00Z`)).includes(text)
  if (!exists) throw new StartupError(`${JSON.stringify(text)} is not a day: YYYY-MM-DD.`)
  if (Date.parse(endOfDay(text)) > Date.now()) throw new StartupError(notOver(text))
  return text
}

/** The reason why nothing was closed. */
const refusalOf = (closed: Exclude<Closed, { kind: 'closed' }>, { tenant, through }: CloseOptions): string => {
  switch (closed.kind) {
    case 'not_over':
      return notOver(through)
    case 'no_events':
      return `There are no events of a tenant ${tenant}. A closing cannot be undone, so only a tenant with books has one.`
    case 'made_anew':
      return (
        `The books of ${tenant} were rebuilt and lack what they had at the last closing: repeat the command when they are ` +
        'complete (npm run ledger -- doctor).'
      )
    case 'behind':
      return 'The books lack events of the period. Is the service running? See npm run ledger -- doctor.'
    case 'parked':
      return (
        `The books of ${tenant} may lack ${closed.count} dead letters: replay or discard them first ` +
        '(npm run ledger -- dead-letters list).'
      )
  }
}

const entriesUpTo = async (sql: Sql, tenant: string, through: string): Promise<bigint> => {
  const [row] = await sql<{ count: bigint }>(
    'select count(*) as count from journal_entries_v1 where tenant_id = $1 and at < $2::timestamptz',
    [tenant, endOfDay(through)],
  )
  return row?.count ?? 0n
}

const entriesText = (entries: bigint): string =>
  entries === 1n ? '1 entry' : `${entries.toLocaleString('en')} entries`

const printPreview = ({ tenant, through, json }: CloseOptions, entries: bigint): void => {
  if (json) printJson({ tenant, through, entries, dry_run: true })
  else
    print(
      `Nothing was changed. A closing through ${through} would close ${entriesText(entries)} of ${tenant}, permanently.`,
    )
}

const close = (options: CloseOptions): Promise<void> => {
  const [tenant, through] = [checkedTenant(options.tenant), checkedDay(options.through)]
  return withStores('periods', async ({ ledger, database: { sql } }) => {
    const entries = await entriesUpTo(sql, tenant, through)
    if (options.dryRun) return printPreview(options, entries)
    const dependencies = { ledger, sql, bookedUpTo: () => positionOf(sql, BOOKS) }
    const closed = await closePeriod(dependencies, { through, reason: options.reason }, operatorContext(tenant))
    if (closed.kind !== 'closed') throw new StartupError(refusalOf(closed, options))
    const { last } = closed
    if (options.json) printJson({ tenant, closed_through: last.through, complete_to: last.complete_to })
    else print(`The books of ${tenant} are closed through ${last.through}, with ${entriesText(entries)}.`)
  })
}

const list = async (options: Options): Promise<void> => {
  const tenant = checkedTenant(options.tenant)
  const history = await withLedger(({ aggregates }) =>
    Array.fromAsync(aggregates.events(periodEntity, periodIdOf(tenant))),
  )
  const items = history.map(({ event: { data }, metadata: { at, subject } }) => ({
    through: data.through,
    closed_at: at,
    subject,
    reason: data.reason,
    complete_to: data.complete_to,
  }))
  if (options.json) return printJson({ items })
  const rows = items.map(item => [item.through, item.closed_at, item.subject, item.reason])
  printTable([['through', 'closed_at', 'subject', 'reason'], ...rows])
}

const ofTenant = (name: string, description: string, json: string): Command =>
  new Command(name)
    .description(description)
    .requiredOption('--tenant <tenant>', 'the tenant of the books')
    .addOption(jsonOption(json))

export const periodsCommand = new Command('periods')
  .description('Closes accounting periods of a tenant, and lists the closings.')
  .addCommand(
    ofTenant(
      'close',
      'Closes all days up to one. This cannot be undone.',
      'print JSON: {tenant, closed_through, complete_to}; with --dry-run {tenant, through, entries, dry_run}',
    )
      .requiredOption('--through <day>', 'the last day of the period, in UTC: YYYY-MM-DD')
      .requiredOption('--reason <text>', 'the reason, which is recorded')
      .option('--dry-run', 'print how many entries it would close, and change nothing', false)
      .action(close),
  )
  .addCommand(
    ofTenant(
      'list',
      'Lists the closings, oldest first.',
      'print JSON: {items: [{through, closed_at, subject, reason, complete_to}]}',
    ).action(list),
  )
  .addHelpText(
    'after',
    `
The journal keeps in a closed period the entries that it had at the closing (up to the position complete_to), also when the
books are made anew. An entry of any later event, a correction too, is dated in the first open day, and the database refuses an
entry in a closed period.
A closing needs a tenant that has events, the day to be over, by the clocks of this machine and of Postgres, all events of the period in the books, and none
of them parked. Repeating it changes nothing. It is an audit record (GET /audit-records, close_period) whose subject is the user of
the operating system.

Example:
  npm run -s ledger -- periods close --tenant acme --through 2026-10-31 --reason "October is audited"`,
  )
