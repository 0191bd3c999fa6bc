import { Command } from 'commander'
import { projections } from '../../projections/index.ts'
import { invoiceResource } from '../../projections/invoices/queries.ts'
import { orderView } from '../../projections/orders/queries.ts'
import { paymentView } from '../../projections/payments/queries.ts'
import { fold, type Projection, type ResourceRow } from '../../projections/projection.ts'
import type { Codec } from '../../streams/codec.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { type Recorded, SYSTEM_TENANT } from '../../streams/envelope.ts'
import { aggregates } from '../../streams/index.ts'
import { recordedOf } from '../../src/lib/storedEvents.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { recordAccess } from './operatorContext.ts'
import { jsonOption, print, printLines } from './print.ts'
import { withLedger } from './stores.ts'
import { streamNamed } from './streams.ts'

/** Sets and maps as arrays, numbers beyond a float as texts. */
const plain = (_: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Set) return [...value]
  return value instanceof Map ? Object.fromEntries(value) : value
}

const revisionOf = (text: string | undefined): bigint | undefined => {
  if (text === undefined) return undefined
  if (/^\d{1,18}$/.test(text)) return BigInt(text)
  throw new StartupError(`${JSON.stringify(text)} is not a revision: a whole number from 0.`)
}

type Fold = (recorded: Recorded<AnyEvent>) => unknown

/** Folds the events into a row as a GET by id does, and shows the resource that it answers. */
const resourceFold = <E extends AnyEvent, R extends ResourceRow>(
  projection: Projection<E, R>,
  view: (row: R) => object,
): Fold => {
  let row: R | undefined
  return recorded => {
    row = fold(projection, row, recorded as Recorded<E>)
    return row && view(row)
  }
}

/** The streams that are resources of the API, by category. */
const RESOURCES: Readonly<Record<string, () => Fold>> = {
  order: () => resourceFold(projections.orders, orderView),
  invoice: () => resourceFold(projections.invoices, invoiceResource),
  payment: () => resourceFold(projections.payments, paymentView),
}

/** The fold of the aggregate that the stream belongs to: takes the events in order, returns the state after each. */
const replayOf = (stream: string): { readonly codec: Pick<Codec<AnyEvent>, 'decode'>; readonly fold: Fold } => {
  const owner = Object.values(aggregates).find(({ category }) => stream.startsWith(`${category}-`))
  if (owner === undefined || owner === aggregates.secret)
    throw new StartupError('Streams with secrets are not replayed.')
  const evolve = owner.decider.evolve as (state: unknown, event: unknown) => unknown
  let state: unknown = owner.decider.initial
  const ofDecider: Fold = ({ event }) => (state = evolve(state, event))
  return { codec: owner.codec, fold: RESOURCES[owner.category]?.() ?? ofDecider }
}

/** The time is that of the decision, which histories and `streams show` have too. */
const printStep = (
  { event: { type }, revision, metadata }: Recorded<AnyEvent>,
  state: unknown,
  json: boolean,
): void => {
  const { at, subject, client, authority } = metadata
  const step = { revision: revision.toString(), at, type, subject, client, authority, state }
  if (json) return printLines(JSON.stringify(step, plain))
  print(`${revision}  ${at}  ${type}`)
  print(`   who  ${subject}${client === subject ? '' : ` through ${client}`}, by ${authority}`)
  printLines(JSON.stringify(state, plain, 2).replaceAll(/^/gm, '   '))
}

const replay = (id: string, { at, json }: { readonly at?: string; readonly json: boolean }): Promise<void> => {
  const [stream, last] = [streamNamed(id), revisionOf(at)]
  const { codec, fold: foldNext } = replayOf(stream)
  return withLedger(async ledger => {
    let shown = 0
    for await (const event of ledger.store.readStream(stream)) {
      if (last !== undefined && event.revision > last) break
      const tenant = event.metadata['tenant']
      const access = { tenant: typeof tenant === 'string' ? tenant : SYSTEM_TENANT, resource: id }
      if (shown === 0) await recordAccess(ledger, { operation: 'replay_stream', ...access })
      const recorded = recordedOf(codec, event)
      printStep(recorded, foldNext(recorded), json)
      shown += 1
    }
    if (shown === 0)
      throw new StartupError(
        `There is no stream ${stream} in the event store named above. Check the id; the API lists those that exist, such as GET /orders.`,
      )
  })
}

export const replayCommand = new Command('replay')
  .description('Folds a stream event by event, and prints the state after each.')
  .argument('<id>', 'the id of an order, invoice, payment or reference: ord_…, inv_…, pay_…, ref_…')
  .option('--at <revision>', 'ends after the event of this revision')
  .addOption(jsonOption('print JSON, one line for each event: {revision, at, type, subject, client, authority, state}'))
  .addHelpText(
    'after',
    '\nThe state of an order, an invoice or a payment has the form of the API; texts about persons are tokens in it.\n' +
      'Events of earlier versions are read as this build reads them. The access is recorded (GET /audit-records).',
  )
  .action(replay)
