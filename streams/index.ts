import { access } from './access/index.ts'
import { apiKey } from './apiKey/index.ts'
import { invoice } from './invoice/index.ts'
import { keyBinding } from './keyBinding/index.ts'
import { manifest } from './manifest/index.ts'
import { operation } from './operation/index.ts'
import { order } from './order/index.ts'
import { parking } from './parking/index.ts'
import { period } from './period/index.ts'
import { payment } from './payment/index.ts'
import { reference } from './reference/index.ts'
import { refund } from './refund/index.ts'
import { secret } from './secret/index.ts'
import { subscription } from './subscription/index.ts'
import { tenant } from './tenant/index.ts'
import { vocabulary } from './vocabulary/index.ts'

export const aggregates = {
  order,
  invoice,
  payment,
  reference,
  refund,
  operation,
  access,
  apiKey,
  keyBinding,
  manifest,
  tenant,
  parking,
  period,
  subscription,
  secret,
  vocabulary,
} as const

export type Category = keyof typeof aggregates

/** The stream of the aggregate with this id. */
export const streamOfId = (id: string): string =>
  `${Object.values(aggregates).find(({ prefix }) => id.startsWith(`${prefix}_`))?.category}-${id}`

export const isCategory = (text: string): text is Category => Object.hasOwn(aggregates, text)
