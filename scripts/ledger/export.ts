import { resolve } from 'node:path'
import { Command } from 'commander'
import { SYSTEM_TENANT } from '../../streams/envelope.ts'
import { hasLeafOf } from '../../src/evidence/leaves.ts'
import type { Database } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { Manifest } from './evidence/format.ts'
import { writeEvidence } from './evidence/write.ts'
import { interruptible } from './interruption.ts'
import { checkedTenant, recordAccess } from './operatorContext.ts'
import { jsonOption, print, printJson } from './print.ts'
import { progressFor } from './progress.ts'
import { withStores } from './stores.ts'

type Options = { readonly evidence: boolean; readonly out: string; readonly tenant?: string; readonly json: boolean }

/** There is no index of the tenants of leaves. */
const SEARCH_TIMEOUT_MS = 600_000

/** An export without an event looks like a good one. */
const refuseUnknown = async (database: Database, tenant: string): Promise<void> => {
  if (await database.transaction(sql => hasLeafOf(sql, tenant), SEARCH_TIMEOUT_MS)) return
  throw new StartupError(`No signed event is of a tenant ${tenant}.`)
}

const exportEvidence = ({ out, tenant: tenantName, json }: Options): Promise<Manifest | undefined> => {
  const tenant = tenantName === undefined ? null : checkedTenant(tenantName)
  return withStores('export', async ({ ledger, database, config }) => {
    if (tenant !== null) await refuseUnknown(database, tenant)
    await recordAccess(ledger, { operation: 'export_evidence', tenant: tenant ?? SYSTEM_TENANT, resource: null })
    const { headsFile } = config.evidence
    const { store, world } = ledger
    const startProgress = progressFor({ json })
    return interruptible(signal =>
      writeEvidence({ store, database, world, headsFile, folder: resolve(out), tenant, startProgress, signal }),
    )
  })
}

const countText = (count: number): string => count.toLocaleString('en')

/** Events of secrets, and in the export of one tenant those of others, are there as their leaves alone. */
const withheldText = (withheld: number): string => (withheld > 0 ? ` and ${countText(withheld)} withheld` : '')

const run = async (options: Options): Promise<void> => {
  if (!options.evidence)
    throw new StartupError('Name what to export: --evidence. For data of a tenant, use POST /exports.')
  const manifest = await exportEvidence(options)
  if (manifest === undefined) return
  const { head, events, missing, surplus } = manifest
  if (options.json) return printJson({ out: resolve(options.out), ...manifest })
  print(
    `${countText(events)} events${withheldText(head.tree_size - events)}, covered by the head of ` +
      `${countText(head.tree_size)} events at ${head.time}, are in ${options.out}.`,
  )
  if (missing + surplus > 0)
    print(
      `The log lacks ${missing} signed events, and has ${surplus} that were never signed: see npm run -s ledger -- verify.`,
    )
  print(`Verify it anywhere: npm run -s ledger -- verify ${options.out}`)
}

export const exportCommand = new Command('export')
  .description('Writes the signed events with leaves, signed heads and a manifest into a folder, for auditors.')
  .option('--evidence', 'required: the kind of export', false)
  .requiredOption('--out <folder>', 'a folder that is empty or does not exist')
  .option('--tenant <tenant>', 'only the events of this tenant; of the others the hashes alone')
  .addOption(jsonOption('print the manifest as JSON'))
  .addHelpText(
    'after',
    '\nEnds at the newest signed head. README.md in the folder describes the files and how to verify them without this\n' +
      'program. The export is an audit record. After Ctrl-C the same command begins again in the same folder.',
  )
  .action(run)
