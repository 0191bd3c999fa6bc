import { createPublicKey } from 'node:crypto'
import { Command } from 'commander'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { signingKeyFrom } from '../../src/compose/signingKey.ts'
import { publicKeys } from '../../src/evidence/headStore.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { acceptLog } from './evidence/acceptance.ts'
import { interruptible } from './interruption.ts'
import { jsonOption, print, printJson, printLines, printNotice } from './print.ts'
import { withStores } from './stores.ts'

type Options = { readonly json: boolean }

/** The signed head has the reason, and the end of the file of heads is read at once. */
const REASON_CHARS_MAX = 1_000

const accept = async ({ json, reason }: Options & { readonly reason: string }): Promise<void> => {
  if (reason.length > REASON_CHARS_MAX)
    throw new StartupError(`The reason has ${reason.length} characters: ${REASON_CHARS_MAX} are the most.`)
  const restart = await withStores('evidence', async ({ ledger, database, config }) => {
    const { headsFile } = config.evidence
    const key = await signingKeyFrom(config)
    return interruptible(signal => acceptLog({ ledger, database, headsFile, key, reason, world: realWorld(), signal }))
  })
  if (restart === undefined) return
  if (json) return printJson(restart)
  const { generation, kept_size, abandoned_size, audit_record } = restart
  const how =
    kept_size >= abandoned_size
      ? 'Confirmed: nothing was lost.'
      : `Accepted: of ${abandoned_size} signed events the first ${kept_size} are kept.`
  print(`${how} Heads of generation ${generation} follow.`)
  print(`The audit record is ${audit_record}.`)
}

/** `publicKey`: SubjectPublicKeyInfo in base64. */
const pemOf = (publicKey: string): string => {
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
  return key.export({ format: 'pem', type: 'spki' }).toString().trimEnd()
}

const printKey = async ({ json }: Options): Promise<void> => {
  const stored = await withStores('evidence', ({ database }) => publicKeys(database.sql))
  const keys = [...stored].map(([id, public_key]) => ({ id, public_key }))
  if (json) return printJson({ items: keys })
  for (const { id, public_key } of keys) {
    printNotice(`The key ${id}:`)
    printLines(pemOf(public_key))
  }
  if (keys.length === 0) printNotice('No head has been signed yet, so there is no key.')
}

export const evidenceCommand = new Command('evidence')
  .description('The signed heads over the log: the keys that sign them, and the acceptance of a restored log.')
  .addCommand(
    new Command('accept')
      .description('Accepts a log that has lost signed events, as after a restore, so that heads are signed again.')
      .requiredOption(
        '--reason <text>',
        'why the loss is accepted, for the audit record and the signed head; no personal data',
      )
      .addOption(
        jsonOption('print JSON: {generation, kept_size, abandoned_size, abandoned_root, audit_record, accepted_by}'),
      )
      .addHelpText(
        'after',
        '\nSee first what is lost: npm run -s ledger -- verify --only evidence. The acceptance is an audit record, and a signed head in\n' +
          'the file of heads: run it with EVIDENCE_SIGNING_KEY and EVIDENCE_HEADS_FILE of the service.',
      )
      .action(accept),
  )
  .addCommand(
    new Command('key')
      .description(
        'Prints the public keys of the heads in PEM, for a file that verify --key takes; their ids are on stderr.',
      )
      .addOption(jsonOption('print JSON: {items: [{id, public_key}]}, with SubjectPublicKeyInfo in base64'))
      .action(printKey),
  )
