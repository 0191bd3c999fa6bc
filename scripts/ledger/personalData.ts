import { Command } from 'commander'
import type { Context, Ledger } from '../../src/commands/commandHandler.ts'
import {
  eraseLostTexts,
  erasePersonalTexts,
  type Erasure,
  type PersonalRecord,
  type PersonalSelector,
  showPersonalTexts,
} from '../../src/personalTexts/personalErasure.ts'
import { isPersonalToken } from '../../src/personalTexts/personalTexts.ts'
import type { Database } from '../../src/ports.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { checkedTenant, operatorContext } from './operatorContext.ts'
import { jsonOption, print, printJson } from './print.ts'
import { withStores } from './stores.ts'

type Options = {
  readonly tenant: string
  readonly customerReference?: string
  readonly paymentReference?: string
  readonly token?: string
  readonly lost?: boolean
  readonly json: boolean
}

/** Exactly one of the options names the text. Throws a StartupError. */
const selectorOf = ({ customerReference, paymentReference, token, ...options }: Options): PersonalSelector => {
  const tenant = checkedTenant(options.tenant)
  if ([customerReference, paymentReference, token].filter(text => text !== undefined).length !== 1)
    throw new StartupError('Name one text: --customer-reference <text>, --payment-reference <text> or --token <token>.')
  if (customerReference !== undefined) return { tenant, kind: 'customer_reference', text: customerReference }
  if (paymentReference !== undefined) return { tenant, kind: 'payment_reference', text: paymentReference }
  if (isPersonalToken(token)) return { tenant, token }
  throw new StartupError('A token is prs_ or prf_ and 26 characters.')
}

type Work<T> = (database: Database, ledger: Ledger, selector: PersonalSelector, context: Context) => Promise<T>

const execute = <T>(options: Options, work: Work<T>): Promise<T> => {
  const selector = selectorOf(options)
  return withStores('personal-data', ({ ledger, database }) =>
    work(database, ledger, selector, operatorContext(selector.tenant)),
  )
}

const sentencesOf = ({ erased, erased_before }: Erasure): readonly string[] => [
  ...erased.map(token => `${token} is erased.`),
  ...erased_before.map(token => `${token} was erased before.`),
  ...(erased.length + erased_before.length === 0 ? ['There is no such text.'] : []),
]

const eraseLost = ({ customerReference, paymentReference, token, ...options }: Options): Promise<Erasure> => {
  if ([customerReference, paymentReference, token].some(text => text !== undefined))
    throw new StartupError('Name one text, or all that were lost by --lost.')
  const tenant = checkedTenant(options.tenant)
  return withStores('personal-data', ({ ledger, database }) =>
    eraseLostTexts(database, ledger, tenant, operatorContext(tenant)),
  )
}

const erase = async (options: Options): Promise<void> => {
  const erasure = await (options.lost === true ? eraseLost(options) : execute(options, erasePersonalTexts))
  if (options.json) return printJson({ tenant: options.tenant, ...erasure })
  for (const sentence of sentencesOf(erasure)) print(sentence)
}

const lineOf = ({ token, text, created_at, erased_at }: PersonalRecord): string =>
  erased_at === null ? `${token}  since ${created_at}  ${JSON.stringify(text)}` : `${token}  erased ${erased_at}`

const show = async (options: Options): Promise<void> => {
  const texts = await execute(options, showPersonalTexts)
  if (options.json) return printJson({ tenant: options.tenant, texts })
  for (const line of texts.length === 0 ? ['There is no such text.'] : texts.map(lineOf)) print(line)
}

const subcommand = (name: string, description: string, json: string): Command =>
  new Command(name)
    .description(description)
    .requiredOption('--tenant <tenant>', 'the name of the tenant, as in its tokens: acme')
    .option('--customer-reference <text>', 'the customer reference of orders, exactly as it was given')
    .option('--payment-reference <text>', 'the reference of payments, exactly as it was given')
    .option('--token <token>', 'the token of the text, as events and facts have it: prs_…, prf_…')
    .addOption(jsonOption(`print JSON: ${json}`))

const EFFECT = `
After an erasure every instance shows null instead of the text within seconds, the ETags of these resources change, and
files of exports that may have the text are expired. Events, facts, balances and proofs are the same as before, since they
have the token only. The same text given again later gets another token; erase it again. Each command is an audit record
(GET /audit-records) with the token, whose subject is the user of the operating system. After a restore of Postgres from a
backup, repeat the erasures since that backup: GET /audit-records?operation=erase_personal_data lists their tokens.
See src/personalTexts/personalData.md.

Examples:
  npm run -s ledger -- personal-data show --tenant acme --customer-reference "Jane Doe"
  npm run -s ledger -- personal-data erase --tenant acme --customer-reference "Jane Doe"`

export const personalDataCommand = new Command('personal-data')
  .description('Shows and erases texts about persons, which events name by tokens.')
  .addCommand(
    subcommand(
      'erase',
      'Erases a text permanently; a repetition erases nothing more.',
      '{tenant, erased: [token], erased_before: [token]}',
    )
      .option('--lost', 'instead of one text: all that `ledger verify --only texts` finds lost, which no dump has')
      .action(erase),
  )
  .addCommand(
    subcommand(
      'show',
      'Shows a text with its token, and the tokens of its erased uses.',
      '{tenant, texts: [{token, kind, text, created_at, erased_at}]}',
    ).action(show),
  )
  .addHelpText('after', EFFECT)
