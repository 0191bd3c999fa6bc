import { Command } from 'commander'
import type { Codec } from '../../streams/codec.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { aggregates } from '../../streams/index.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { recordedOf } from '../../src/lib/storedEvents.ts'
import type { StoredEvent } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { recordLook } from './audited.ts'
import { findConnections, howToStart } from './connections.ts'
import { print, printLines } from './print.ts'
import { streamNamed } from './streams.ts'

/** `replay`: folds a stream event by event, and prints the state after each. Memory has one event and one state. */

type Options = { readonly at?: string; readonly json: boolean }

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

/** The fold of the aggregate that the stream belongs to: takes the events in order, returns the state after each. */
const foldOf = (stream: string): ((event: StoredEvent) => unknown) => {
  const owner = Object.values(aggregates).find(({ category }) => stream.startsWith(`${category}-`))
  if (owner === undefined || owner === aggregates.secret)
    throw new StartupError('Streams with secrets are not replayed.')
  const evolve = owner.decider.evolve as (state: unknown, event: unknown) => unknown
  const codec: Pick<Codec<AnyEvent>, 'decode'> = owner.codec
  let state: unknown = owner.decider.initial
  return event => (state = evolve(state, recordedOf(codec, event).event))
}

const printStep = ({ revision, storedAt, type }: StoredEvent, state: unknown, json: boolean): void => {
  const step = { revision: revision.toString(), at: storedAt, type, state }
  if (json) return printLines(JSON.stringify(step, plain))
  print(`${revision}  ${storedAt}  ${type}`)
  printLines(JSON.stringify(state, plain, 2).replaceAll(/^/gm, '   '))
}

const replay = async (id: string, { at, json }: Options): Promise<void> => {
  const [stream, last] = [streamNamed(id), revisionOf(at)]
  const fold = foldOf(stream)
  const { config, addresses } = await findConnections()
  if (addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  const store = openEventStore({ connectionString: addresses.event_store })
  let shown = 0
  try {
    for await (const event of store.readStream(stream)) {
      if (last !== undefined && event.revision > last) break
      const tenant = event.metadata['tenant']
      const look = { tenant: typeof tenant === 'string' ? tenant : SYSTEM_TENANT, resource: id }
      if (shown === 0) await recordLook(createLedger(store, realWorld()), { operation: 'replay_stream', ...look })
      printStep(event, fold(event), json)
      shown += 1
    }
  } finally {
    await store.close()
  }
  if (shown === 0) throw new StartupError(`There is no stream ${stream}.`)
}

export const replayCommand = new Command('replay')
  .description('Folds a stream event by event, and prints the state after each.')
  .argument('<id>', 'the id of an order, invoice, payment or reference: ord_…, inv_…, pay_…, ref_…')
  .option('--at <revision>', 'ends after the event of this revision')
  .option('--json', 'print JSON, one line for each event: {revision, at, type, state}', false)
  .addHelpText(
    'after',
    '\nEvents of earlier versions are read as this build reads them. The access is recorded (GET /audit-records).',
  )
  .action(replay)
