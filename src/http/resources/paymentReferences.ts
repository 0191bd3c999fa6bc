import type { JsonObject } from '../../ports.ts'
import { keyedId } from '../../lib/identifiers.ts'
import type { PersonalReference } from '../../commands/payments.ts'
import { type PersonalText, storeUnlessBound } from '../../personalTexts/personalTexts.ts'
import type { AnyLogCall } from '../services.ts'

/** The references of payments in requests: events and read models have tokens in their place. */

const personalTextOf = ({ principal: { tenant } }: AnyLogCall, text: string): PersonalText => ({
  tenant,
  kind: 'payment_reference',
  text,
})

/** The reference of a new payment. `digest` stands for it in the idempotency record. */
export const referenceOf = async (
  call: AnyLogCall,
  text: string | null,
): Promise<(PersonalReference & { readonly digest: string }) | null> => {
  if (text === null) return null
  const { ledger, personalTexts } = call
  const personal = personalTextOf(call, text)
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
  call: AnyLogCall,
  text: string | undefined,
): Promise<{ readonly reference?: string }> =>
  text === undefined ? {} : { reference: (await call.personalTexts.find(personalTextOf(call, text))) ?? NO_REFERENCE }

type Filters = Readonly<Record<string, string>>

/** The filters of an export: as they are compared under a key, and as its events have them. */
export type ExportFilters = {
  readonly compared: Filters & JsonObject
  /** A reference that is not stored finds nothing, and is not stored for the filter's sake. Throws Unavailable. */
  readonly find: () => Promise<Filters>
}

export const exportFilters = async (call: AnyLogCall, filters: Filters): Promise<ExportFilters> => {
  const { reference } = filters
  if (reference === undefined) return { compared: filters, find: async () => filters }
  return {
    compared: { ...filters, reference: await call.personalTexts.digest(personalTextOf(call, reference)) },
    find: async () => ({ ...filters, ...(await columnFilters(call, reference)) }),
  }
}
