import type { JsonObject } from '../../ports.ts'
import { keyedId } from '../../lib/identifiers.ts'
import type { PersonalReference } from '../../commands/paymentInitiation.ts'
import { type PersonalText, storeUnlessBound } from '../../personalTexts/personalTexts.ts'
import type { LogCall } from '../route.ts'

/**
 * The references of payments in requests: events and read models have tokens in their place. In the log of an earlier
 * build they have the references themselves, and everything here leaves them as they are.
 */

type AnyCall = LogCall<unknown, unknown, unknown>

/** Undefined without a reference, and in a log of an earlier build. */
const personalTextOf = async (
  { ledger, principal: { tenant } }: AnyCall,
  text: string | null | undefined,
): Promise<PersonalText | undefined> =>
  typeof text === 'string' && (await ledger.hasKeyedReferences())
    ? { tenant, kind: 'payment_reference', text }
    : undefined

/** The reference of a new payment. `digest` stands for it in the idempotency record. */
export const personalReferenceOf = async (
  call: AnyCall,
  text: string | null,
): Promise<(PersonalReference & { readonly digest: string }) | undefined> => {
  const { ledger, personalTexts } = call
  const personal = await personalTextOf(call, text)
  if (personal === undefined) return undefined
  return {
    digest: await personalTexts.digest(personal),
    stream: keyedId('ref', await ledger.idSecret(), [personal.tenant, personal.text]),
    store: answer => storeUnlessBound(personalTexts, personal, answer),
  }
}

/** No payment has this reference. */
const NO_REFERENCE = ''

/** The filter of a list, by the column of the read model. An erased reference finds nothing. */
export const columnFilters = async (
  call: AnyCall,
  text: string | undefined,
): Promise<{ readonly reference?: string }> => {
  const personal = await personalTextOf(call, text)
  return personal === undefined ? {} : { reference: (await call.personalTexts.find(personal)) ?? NO_REFERENCE }
}

type Filters = Readonly<Record<string, string>>

/** The filters of an export: as they are compared under a key, and as its events have them. */
export type ExportFilters = {
  readonly compared: Filters & JsonObject
  /** A reference that is not stored finds nothing, and is not stored for the filter's sake. Throws Unavailable. */
  readonly find: () => Promise<Filters>
}

export const exportFilters = async (call: AnyCall, filters: Filters): Promise<ExportFilters> => {
  const personal = await personalTextOf(call, filters['reference'])
  if (personal === undefined) return { compared: filters, find: async () => filters }
  return {
    compared: { ...filters, reference: await call.personalTexts.digest(personal) },
    find: async () => ({ ...filters, ...(await columnFilters(call, personal.text)) }),
  }
}
