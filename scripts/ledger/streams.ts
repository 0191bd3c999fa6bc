import { Command } from 'commander'
import { z } from 'zod'
import { StartupError } from '../../src/lib/startupError.ts'
import type { StoredEvent } from '../../src/ports.ts'
import { streamOf } from '../../streams/aggregate.ts'
import { type Id, type IdPrefix, isId } from '../../streams/ids.ts'
import { aggregates } from '../../streams/index.ts'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { jsonOption, print, printJson, printLines } from './print.ts'
import { withoutPassword } from './connections.ts'
import { recordAccess } from './operatorContext.ts'
import { withLedger } from './stores.ts'

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

/** One event as an auditor reads it: the stored form, without upcasting. */
const entryOf = ({ revision, position, id, type, storedAt, metadata, data }: StoredEvent) => {
  const { $correlationId, $causationId, schemaVersion, at, ...who } = metadataSchema.parse(metadata)
  return {
    revision,
    position,
    event_id: id,
    type,
    schema_version: schemaVersion,
    /** The time of the decision by the clock of the service; `stored_at` is by the clock of the store. */
    at: at ?? storedAt,
    stored_at: storedAt,
    /** `authority`: the scope of the caller, or the name of the process manager. */
    ...who,
    correlation_id: $correlationId,
    causation_id: $causationId,
    data,
  }
}
type Entry = ReturnType<typeof entryOf>

/** A secret of the service, which no output has. */
const REDACTED = { redacted: true }

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

const show = (id: string, { json }: { readonly json: boolean }): Promise<void> => {
  const stream = streamNamed(id)
  return withLedger(async (ledger, { addresses }) => {
    const entries: Entry[] = []
    const isSecret = stream.startsWith(`${aggregates.secret.category}-`)
    for await (const event of ledger.store.readStream(stream))
      entries.push(entryOf(isSecret ? { ...event, data: REDACTED } : event))
    const [first] = entries
    if (first === undefined)
      throw new StartupError(
        `There is no stream ${stream} in the store at ${withoutPassword(addresses.event_store ?? '')}. Check the id.`,
      )
    await recordAccess(ledger, { operation: 'show_stream', tenant: first.tenant ?? SYSTEM_TENANT, resource: id })
    if (json) return printJson({ stream, id, events: entries })
    print(`${stream}, ${entries.length} ${entries.length === 1 ? 'event' : 'events'}, tenant ${first.tenant}`)
    print()
    for (const entry of entries) printEntry(entry)
  })
}

export const streamsCommand = new Command('streams').description('Shows the stored events of a stream.').addCommand(
  new Command('show')
    .description('Prints every event of a stream: revision, time, type, subject, authority, correlation id and data.')
    .argument('<id>', 'the id of an order, invoice, payment or reference: ord_…, inv_…, pay_…, ref_…')
    .addOption(jsonOption('print JSON: {stream, id, events: [{revision, position, type, at, subject, …}]}'))
    .addHelpText(
      'after',
      '\nThe data is shown as it is stored, in the schema version of its time (schema_version); secrets of the service are not.\n' +
        'The access is recorded (GET /audit-records).\n' +
        'Reads the store of the running service, or of EVENTSTORE_URL. Exit code 2 if there is no such stream.',
    )
    .action(show),
)
