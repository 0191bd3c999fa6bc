import { type GlobalMeta, z } from 'zod'
import { ACCOUNT_CODE } from '../../../feeds/accountCodes.ts'
import { ENTRY_KINDS, type EntryKind } from '../../../../projections/bookings.ts'
import { ACCOUNT_TYPES, DIRECTIONS } from '../../../../projections/chartOfAccounts.ts'
import { idSchema } from '../../../../streams/ids.ts'
import { positionSchema } from '../../request/position.ts'
import { amountSchema, currencySchema, exponentSchema, sumSchema, timeParameter, timeSchema } from '../commonSchemas.ts'
import { createdQuery, pageSchema } from '../paging.ts'

export const accountCodeSchema = z
  .string()
  .regex(
    ACCOUNT_CODE,
    'Must be an account code, such as cash.USD. GET /accounts lists them; with customer_reference, those of one customer.',
  )
  .meta({
    description:
      'The code of an account, such as cash.USD. That of receivables ends with a token of the customer reference: find it by ' +
      'GET /accounts?customer_reference=.',
    examples: ['cash.USD', 'receivables.USD.prs_01JB3N8Q6Z4T1V7W9XAC2E5GHK'],
  })

/** The moment of every answer about the books. */
export const booksQuery = {
  as_of: timeParameter.optional().meta({
    description:
      'The books as they were at this time; entries of the last ten seconds may still arrive. 503 while the books lack events.',
  }),
  as_of_position: positionSchema
    .optional()
    .meta({ description: 'The books as of this position of the log. Not together with as_of.' }),
}

/** The filters of an export of the journal; with `account` it is the statement of that account. */
export const postingFilters = {
  ...createdQuery,
  account: accountCodeSchema.optional(),
  order_id: idSchema('ord').optional(),
  invoice_id: idSchema('inv').optional(),
  payment_id: idSchema('pay').optional(),
}

/** Without the bounds of the safe integers, which zod adds: see projections/exactAmounts.ts. */
const OF_ANY_SIZE: GlobalMeta['override'] = ({ jsonSchema }) => {
  delete jsonSchema.maximum
  if (jsonSchema.minimum !== 0) delete jsonSchema.minimum
}
const DIGITS = 'May exceed 2^53 - 1, with exact digits.'

const balanceSchema = (description: string) =>
  z.int().meta({ description: `${description} ${DIGITS}`, override: OF_ANY_SIZE })
const totalSchema = (description: string) =>
  sumSchema.meta({ description: `${description} ${DIGITS}`, override: OF_ANY_SIZE })

const customerOfAccount = z.string().nullable().meta({
  description:
    'The customer of receivables, as in the order that was invoiced; null for other accounts, and when it was erased.',
})

export const accountSchema = z
  .object({
    code: accountCodeSchema,
    name: z.string(),
    type: z.enum(ACCOUNT_TYPES),
    currency: currencySchema,
    exponent: exponentSchema,
    customer_reference: customerOfAccount,
    normal_side: z.enum(DIRECTIONS).meta({ description: 'The side on which the balances grow.' }),
    balances: z
      .object({
        exponent: exponentSchema,
        posted: balanceSchema('The balance of all that is final, in minor units on the normal side.'),
        pending: balanceSchema('The change by payments that are neither settled nor failed.'),
        available: balanceSchema('The posted balance, less what pending payments take from it.'),
      })
      .meta({ id: 'Balances' }),
  })
  .meta({ id: 'Account' })

export const entrySchema = z
  .object({
    id: idSchema('ent'),
    at: timeSchema.meta({ description: 'The time of the entry; never before the time of an earlier entry.' }),
    position: z.string().meta({ description: 'The position of the event in the log: the order of the journal.' }),
    event_id: z.uuid().meta({ description: 'The event that the entry is made from.' }),
    kind: z.enum(Object.keys(ENTRY_KINDS) as [EntryKind, ...EntryKind[]]),
    description: z.string(),
    order_id: idSchema('ord'),
    invoice_id: idSchema('inv'),
    payment_id: idSchema('pay').nullable(),
    reverses: idSchema('ent').nullable().meta({ description: 'The entry that this one reverses.' }),
    reversed_by: idSchema('ent').nullable().meta({ description: 'The entry that reverses this one.' }),
    postings: z
      .array(
        z
          .object({
            account: accountCodeSchema,
            direction: z.enum(DIRECTIONS),
            amount: amountSchema,
            currency: currencySchema,
          })
          .meta({ id: 'Posting' }),
      )
      .min(2)
      .meta({
        description: 'The sum of the debits equals the sum of the credits.',
        examples: [
          [
            { account: 'cash.USD', direction: 'debit', amount: 1_099, currency: 'USD' },
            {
              account: 'receivables.USD.prs_01JB3N8Q6Z4T1V7W9XAC2E5GHK',
              direction: 'credit',
              amount: 1_099,
              currency: 'USD',
            },
          ],
        ],
      }),
  })
  .meta({ id: 'JournalEntry' })

export const trialBalanceRowSchema = z
  .object({
    account: accountCodeSchema,
    account_name: z.string().meta({ description: 'The name of the account in the chart of accounts.' }),
    customer_reference: customerOfAccount,
    currency: currencySchema,
    exponent: exponentSchema,
    debits: totalSchema('The sum of all debits of the account, in minor units.'),
    credits: totalSchema('The sum of all credits of the account, in minor units.'),
  })
  .meta({ id: 'TrialBalanceRow' })

const trialBalanceTotal = z
  .object({
    currency: currencySchema,
    exponent: exponentSchema,
    debits: totalSchema('The sum of the debits of all accounts, in minor units; it equals that of the credits.'),
    credits: totalSchema('The sum of the credits of all accounts, in minor units.'),
  })
  .meta({ id: 'TrialBalanceTotal' })

export const trialBalanceSchema = pageSchema(trialBalanceRowSchema).extend({
  totals: z.array(trialBalanceTotal).meta({
    description: 'The totals of all accounts in each currency, not only of this page; the same on every page.',
  }),
})
