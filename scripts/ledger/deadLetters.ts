import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { READ_MODEL_FOLDERS } from '../../projections/index.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import {
  type DeadLetter,
  deadLettersOfKey,
  type DeadLetterRequest,
  deadLetterSummary,
  requestForDeadLetters,
} from '../../src/feeds/deadLetters.ts'
import type { Database } from '../../src/ports.ts'
import { recordAccess } from './operatorContext.ts'
import { interruptible } from './interruption.ts'
import { jsonCommand, print, printJson, printNotice } from './print.ts'
import { progressFor } from './progress.ts'
import { withStores, type Stores } from './stores.ts'
import { printTable } from './table.ts'

const WAIT_MAX_MS = 30_000
/** A summary reads all dead letters, of which there may be millions. */
const STATEMENT_TIMEOUT_MS = 60_000
const POLL_MS = 200
const NOT_CARRIED_OUT = 'No running process has carried it out yet; the next one that starts does.'
const PUBLISHER = 'publisher'

type Json = { readonly json: boolean }
type Which = Json & { readonly delivery: string }

const withDeadLetters = (work: (stores: Stores) => Promise<void>): Promise<void> =>
  withStores('dead-letters', work, { statementTimeoutMs: STATEMENT_TIMEOUT_MS })

const list = ({ json }: Json): Promise<void> =>
  withDeadLetters(async ({ database: { sql } }) => {
    const keys = await deadLetterSummary(sql)
    if (json) return printJson({ keys })
    if (keys.length === 0) return print('No dead letters.')
    const titles = ['DELIVERY', 'KEY', 'WAITING', 'FAILED', 'ATTEMPTS', 'SINCE', 'REASON']
    const members = ['delivery', 'key', 'waiting', 'type', 'attempts', 'first_failed_at', 'reason'] as const
    printTable([titles, ...keys.map(key => members.map(member => key[member]))])
  })

const waitingOf = async ({ sql }: Database, delivery: string, key: string): Promise<readonly DeadLetter[]> => {
  const facts = await deadLettersOfKey(sql, delivery, key)
  if (facts.length > 0) return facts
  throw new StartupError(`Nothing of ${key} is parked in ${delivery}. See npm run ledger -- dead-letters list.`)
}

const show = (key: string, { json, delivery }: Which): Promise<void> =>
  withDeadLetters(async ({ database }) => {
    const facts = await waitingOf(database, delivery, key)
    if (json) return printJson({ delivery, key, facts })
    const titles = ['POSITION', 'EVENT', 'ID', 'ATTEMPTS', 'SINCE', 'REASON']
    const members = ['position', 'type', 'event_id', 'attempts', 'first_failed_at', 'reason'] as const
    printTable([titles, ...facts.map(fact => members.map(member => fact[member]))])
  })

type OperatorRequest = {
  readonly delivery: string
  readonly key: string
  readonly what: DeadLetterRequest
  readonly position?: bigint
}

/** Waits for WAIT_MAX_MS at most. Resolves to the rows of the key that remain. */
const awaitExecution = async (
  { sql }: Database,
  { delivery, key, position }: OperatorRequest,
  { signal, onWaiting }: { readonly signal: AbortSignal; readonly onWaiting: (waiting: number) => void },
) => {
  const until = performance.now() + WAIT_MAX_MS
  for (;;) {
    const facts = await deadLettersOfKey(sql, delivery, key)
    const requests = facts.filter(fact => fact.requested !== null && (position ?? fact.position) === fact.position)
    if (requests.length === 0 || performance.now() > until) return { facts, isPending: requests.length > 0 }
    onWaiting(requests.length)
    await sleep(POLL_MS, undefined, { signal })
  }
}

const execute = (order: OperatorRequest, { json }: Json): Promise<void> =>
  withDeadLetters(async ({ ledger, database }) => {
    const { delivery, key, what, position } = order
    const before = await waitingOf(database, delivery, key)
    const meant = position === undefined ? before : before.filter(fact => fact.position === position)
    if (meant[0] === undefined) throw new StartupError(`No fact of ${key} is parked at position ${position}.`)
    // The audit record is written before the action, so that no discarded fact is without one.
    await recordAccess(ledger, { operation: `${what}_dead_letters`, tenant: meant[0].tenant_id, resource: key })
    await requestForDeadLetters(database.sql, { delivery, key }, what, position)
    const progress = progressFor({ json })(key, 'events', { total: meant.length })
    const onWaiting = (waiting: number): void => progress.update(meant.length - waiting)
    // The request is stored: a process carries it out after an interruption too, and a repetition asks for the rest.
    const executed = await interruptible(signal => awaitExecution(database, order, { signal, onWaiting })).finally(
      progress.end,
    )
    if (executed === undefined) return
    const { facts, isPending } = executed
    const done = before.length - facts.length
    if (json) printJson({ delivery, key, [what === 'replay' ? 'replayed' : 'discarded']: done, waiting: facts.length })
    else print(`${what === 'replay' ? 'Replayed' : 'Discarded'} ${done}; ${facts.length} of ${key} wait.`)
    if (done === meant.length && !isPending) return
    printNotice(isPending ? NOT_CARRIED_OUT : `It failed again: ${facts[0]?.reason}`)
    process.exitCode = 1
  })

const replay = (key: string, options: Which): Promise<void> =>
  execute({ delivery: options.delivery, key, what: 'replay' }, options)

const discard = (
  key: string,
  options: Which & { readonly position?: string; readonly all: boolean },
): Promise<void> => {
  const { delivery, position, all } = options
  if ((position === undefined) !== all)
    throw new StartupError('Say which: --position of one fact, or --all of the key.')
  if (position !== undefined && !/^\d{1,19}$/.test(position)) throw new StartupError('--position is a whole number.')
  const order = { delivery, key, what: 'discard' as const }
  return execute(position === undefined ? order : { ...order, position: BigInt(position) }, options)
}

/** A read model has two names (`projections list`); its dead letters are kept by that of its checkpoint. */
const checkpointOf = (delivery: string): string => READ_MODEL_FOLDERS[delivery] ?? delivery

const ofKey = (name: string, description: string): Command =>
  jsonCommand(name, description)
    .argument('<key>', 'the id of the aggregate, as `list` shows it')
    .option(
      '--delivery <name>',
      'the delivery: publisher, the id of a subscription, a read model or a process manager',
      checkpointOf,
      PUBLISHER,
    )

export const deadLettersCommand = new Command('dead-letters')
  .description('Lists, replays and discards dead letters: those that failed, and the later ones of their keys.')
  .addCommand(
    jsonCommand(
      'list',
      'Lists the parked keys with the number of facts, the failed event, the time and the reason.',
    ).action(list),
  )
  .addCommand(ofKey('show', 'Shows the dead letters of a key in the order of their delivery.').action(show))
  .addCommand(
    ofKey('replay', 'Delivers the dead letters of a key in order, up to the first that fails again.').action(replay),
  )
  .addCommand(
    ofKey('discard', 'Discards dead letters: this delivery never sends them. The events stay in the store.')
      .option('--position <position>', 'discard the fact at this position')
      .option('--all', 'discard all dead letters of the key', false)
      .action(discard),
  )
  .addHelpText(
    'after',
    '\nA fact is parked after ten failed attempts: it cannot be made from its event, or the broker refuses it for its size.\n' +
      'An outage of the broker parks nothing. An event that a build cannot decode is parked by the read models (payments_v1),\n' +
      'the process managers (settlement is payment recovery, fulfilment, exports) and the publisher. replay and discard are\n' +
      'executed by the process that runs the delivery, and are audit records (GET /audit-records).\n' +
      'Exit code 1 if the request was not executed completely.\n' +
      '\nExamples:\n' +
      '  npm run -s ledger -- dead-letters list\n' +
      '  npm run -s ledger -- dead-letters replay inv_01JB3N8Q6Z4T1V7W9XAC2E5GHK\n' +
      '  npm run -s ledger -- dead-letters discard inv_01JB3N8Q6Z4T1V7W9XAC2E5GHK --position 4711',
  )
