import { Command } from 'commander'
import { z } from 'zod'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { JsonObject, StoredEvent } from '../../src/ports.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { type Id, type IdPrefix, isId } from '../../streams/ids.ts'
import { aggregates } from '../../streams/index.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { recordLook } from './audited.ts'
import { print, printJson, printLines } from './print.ts'
import { findConnections, howToStart, withoutPassword } from './connections.ts'

/** `streams`: prints the stored events of a stream. */

/** One event as an auditor reads it: the stored form, without upcasting. */
type Entry = {
  readonly revision: bigint
  readonly position: bigint
  readonly event_id: string
  readonly type: string
  readonly schema_version: number | null
  /** The time of the decision by the clock of the service; `stored_at` is by the clock of the store. */
  readonly at: string
  readonly stored_at: string
  readonly tenant: string | null
  readonly subject: string | null
  readonly client: string | null
  /** The scope of the caller, or the name of the process manager. */
  readonly authority: string | null
  readonly correlation_id: string | null
  readonly causation_id: string | null
  readonly data: JsonObject
}

/** Every member may be absent, because events that this service did not write must be shown too. */
const text = z.string().nullable().catch(null).default(null)
const metadataSchema = z.object({
  tenant: text,
  subject: text,
  client: text,
  authority: text,
  $correlationId: text,
  $causationId: text,
  at: text,
  schemaVersion: z.int().nullable().catch(null).default(null),
})

const entryOf = ({ revision, position, id, type, storedAt, metadata, data }: StoredEvent): Entry => {
  const { $correlationId, $causationId, schemaVersion, at, ...who } = metadataSchema.parse(metadata)
  return {
    revision,
    position,
    event_id: id,
    type,
    schema_version: schemaVersion,
    at: at ?? storedAt,
    stored_at: storedAt,
    ...who,
    correlation_id: $correlationId,
    causation_id: $causationId,
    data,
  }
}

/** A secret of the service, which no output has. */
const REDACTED = { redacted: true }
const SECRETS = `${aggregates.secret.category}-`

const shownOf = (stream: string, event: StoredEvent): Entry =>
  stream.startsWith(SECRETS) ? { ...entryOf(event), data: REDACTED } : entryOf(event)

const AGGREGATES = Object.values(aggregates)

/** The stream of an id. Throws a StartupError if no aggregate has ids of this form. */
export const streamNamed = (id: string): string => {
  const owner = AGGREGATES.find(({ prefix }) => isId(prefix, id))
  if (owner !== undefined) return streamOf(owner, id as Id<IdPrefix>)
  const forms = AGGREGATES.map(({ prefix }) => `${prefix}_…`).join(', ')
  throw new StartupError(
    `${JSON.stringify(id)} is not a stream id. An id is a prefix and 26 characters: ${forms}. For the ids of tenants, run npm run -s ledger -- tenants list.`,
  )
}

const INDENT = '   '

const printEntry = (entry: Entry): void => {
  const { revision, at, type, subject, client, authority, correlation_id, causation_id, data } = entry
  const by = client === null || client === subject ? '' : ` through ${client}`
  print(`${revision}  ${at}  ${type}`)
  print(`${INDENT}who          ${subject ?? 'not said'}${by}, by ${authority ?? 'no authority said'}`)
  print(`${INDENT}correlation  ${correlation_id ?? 'none'}, caused by ${causation_id ?? 'nothing said'}`)
  printLines(JSON.stringify(data, null, 2).replaceAll(/^/gm, INDENT))
  print()
}

const show = async (id: string, { json }: { readonly json: boolean }): Promise<void> => {
  const stream = streamNamed(id)
  const { config, addresses } = await findConnections()
  if (addresses.event_store === null) throw new StartupError(howToStart(config.dataDir))
  const store = openEventStore({ connectionString: addresses.event_store })
  try {
    const entries: Entry[] = []
    for await (const event of store.readStream(stream)) entries.push(shownOf(stream, event))
    if (entries.length === 0)
      throw new StartupError(
        `There is no stream ${stream} in the store at ${withoutPassword(addresses.event_store)}. Check the id.`,
      )
    const look = { operation: 'show_stream', tenant: entries[0]?.tenant ?? SYSTEM_TENANT, resource: id }
    await recordLook(createLedger(store, realWorld()), look)
    if (json) return printJson({ stream, id, events: entries })
    print(`${stream}, ${entries.length} ${entries.length === 1 ? 'event' : 'events'}, tenant ${entries[0]?.tenant}`)
    print()
    for (const entry of entries) printEntry(entry)
  } finally {
    await store.close()
  }
}

export const streamsCommand = new Command('streams').description('Shows the stored events of a stream.').addCommand(
  new Command('show')
    .description('Prints every event of a stream: revision, time, type, subject, authority, correlation id and data.')
    .argument('<id>', 'the id of an order, invoice, payment or reference: ord_…, inv_…, pay_…, ref_…')
    .option('--json', 'print JSON: {stream, id, events: [{revision, position, type, at, subject, …}]}', false)
    .addHelpText(
      'after',
      '\nThe data is shown as it is stored, in the schema version of its time (schema_version); secrets of the service are not.\n' +
        'The access is recorded (GET /audit-records).\n' +
        'Reads the store of the running service, or of EVENTSTORE_URL. Exit code 2 if there is no such stream.',
    )
    .action(show),
)
