import { Command } from 'commander'
import { timeParameter } from '../../src/http/resources/commonSchemas.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { NewReplay, NewSubscription, Subscription } from '../client/src/index.ts'
import { type CallerOptions, keyOf, keyOption, ledgerOf, PAGE_LIMIT, withCaller } from './apiClient.ts'
import { jsonOption, print, printJson } from './print.ts'
import { printTable } from './table.ts'

/** Creating, resuming and replaying need the read scopes of the delivered facts. */
const SCOPES = ['events:subscribe', 'orders:read', 'invoices:read', 'payments:read', 'exports:read']

/** Parses `beginning`, `now`, a position of the log, or a time. */
const placeOf = (text: string): NewSubscription['start'] => {
  if (text === 'beginning' || text === 'now') return text
  if (/^\d{1,19}$/.test(text)) return { position: text }
  const time = timeParameter.safeParse(text).data
  if (time !== undefined) return { time }
  throw new StartupError(
    `${JSON.stringify(text)} is not a place in the log: beginning, now, a position, or a time with its zone (RFC 3339).`,
  )
}

const show = ({ json }: CallerOptions, subscription: Subscription): void => {
  if (json) return printJson(subscription)
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
  printTable(Object.entries(subscription).map(([name, value]) => [name, textOf(value)]))
}

const list = async (options: CallerOptions): Promise<void> => {
  const ledger = await ledgerOf(options, SCOPES)
  const items = await Array.fromAsync(ledger.list('GET /subscriptions', { query: { limit: PAGE_LIMIT } }))
  if (options.json) return printJson({ items })
  const rows = items.map(({ id, state, lag, parked, types }) => [id, state, lag ?? 'null', parked, types.join(' ')])
  printTable([['id', 'state', 'lag', 'parked', 'types'], ...rows])
}

const create = async (options: CallerOptions & { types: string; start: string; principal?: string }): Promise<void> => {
  const { types, start, principal } = options
  // The service refuses types that it does not have.
  const named = types.split(/[\s,]+/).filter(Boolean) as NewSubscription['types'][number][]
  const body = { types: named, start: placeOf(start), principal }
  const ledger = await ledgerOf(options, SCOPES)
  show(options, (await ledger.request('POST /subscriptions', { body, idempotencyKey: keyOf(options) })).data)
}

type OfOne = 'GET /subscriptions/{id}' | 'POST /subscriptions/{id}:pause' | 'POST /subscriptions/{id}:resume'

const ask = (operation: OfOne) => async (id: string, options: CallerOptions) => {
  const ledger = await ledgerOf(options, SCOPES)
  show(options, (await ledger.request(operation, { path: { id } })).data)
}

const replay = async (id: string, options: CallerOptions & { readonly from: string }): Promise<void> => {
  const ledger = await ledgerOf(options, SCOPES)
  // The service refuses the place `now`.
  const body = { from: placeOf(options.from) as NewReplay['from'] }
  const input = { path: { id }, body, idempotencyKey: keyOf(options) }
  const { data: operation } = await ledger.request('POST /subscriptions/{id}:replay', input)
  if (options.json) printJson(operation)
  else print(`${operation.id} is ${operation.state}: see GET /operations/${operation.id}.`)
}

const remove = async (id: string, options: CallerOptions): Promise<void> => {
  const ledger = await ledgerOf(options, SCOPES)
  await ledger.request('DELETE /subscriptions/{id}', { path: { id } })
  if (options.json) printJson({ id, state: 'deleted' })
  else print(`${id} is deleted, and its topics with it. The facts stay in the store.`)
}

const subcommand = (name: string): Command =>
  withCaller(new Command(name), { scope: 'events:subscribe', tenant: 'the tenant of the subscriptions' }).addOption(
    jsonOption('print JSON, the response of the API'),
  )

const ofOne = (name: string, description: string): Command =>
  subcommand(name).description(description).argument('<id>', 'the id of the subscription: sub_…')

export const subscriptionsCommand = new Command('subscriptions')
  .description('Lists, creates, pauses, resumes, replays and deletes subscriptions. The service must run.')
  .addCommand(subcommand('list').description('Lists the subscriptions of the tenant, newest first.').action(list))
  .addCommand(
    ofOne('show', 'Shows a subscription: its topic, its position, its lag and its dead letters.').action(
      ask('GET /subscriptions/{id}'),
    ),
  )
  .addCommand(
    subcommand('create')
      .description('Creates a subscription, whose facts are delivered to a topic of its own.')
      .requiredOption('--types <types>', 'the types of the facts: "invoice.paid payment.succeeded"')
      .option('--start <place>', 'the first facts: beginning, now, a position of the log, or a time (RFC 3339)', 'now')
      .option('--principal <user>', 'the Kafka user that may read the topic')
      .addOption(keyOption)
      .action(create),
  )
  .addCommand(
    ofOne('pause', 'Pauses the delivery until the subscription is resumed.').action(
      ask('POST /subscriptions/{id}:pause'),
    ),
  )
  .addCommand(
    ofOne('resume', 'Resumes the delivery at the position where it was paused or stopped.').action(
      ask('POST /subscriptions/{id}:resume'),
    ),
  )
  .addCommand(
    ofOne('replay', 'Delivers the facts again from an earlier position.')
      .requiredOption('--from <place>', 'the first facts: beginning, a position of the log, or a time (RFC 3339)')
      .addOption(keyOption)
      .action(replay),
  )
  .addCommand(ofOne('delete', 'Deletes the subscription with its topics and the rights to read them.').action(remove))
