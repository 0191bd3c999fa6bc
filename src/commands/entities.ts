import { apiKeys } from '../../projections/apiKeys/projection.ts'
import { invoices } from '../../projections/invoices/projection.ts'
import { operations } from '../../projections/operations/projection.ts'
import { orders } from '../../projections/orders/projection.ts'
import { payments } from '../../projections/payments/projection.ts'
import type { Projection, ResourceRow } from '../../projections/projection.ts'
import { subscriptions } from '../../projections/subscriptions/projection.ts'
import type { Aggregate } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { type Id, type IdPrefix, isId } from '../../streams/ids.ts'
import { access } from '../../streams/access/index.ts'
import { apiKey } from '../../streams/apiKey/index.ts'
import { invoice } from '../../streams/invoice/index.ts'
import { keyBinding } from '../../streams/keyBinding/index.ts'
import { manifest } from '../../streams/manifest/index.ts'
import { operation } from '../../streams/operation/index.ts'
import { order } from '../../streams/order/index.ts'
import { payment } from '../../streams/payment/index.ts'
import { period } from '../../streams/period/index.ts'
import { reference } from '../../streams/reference/index.ts'
import { refund } from '../../streams/refund/index.ts'
import { subscription } from '../../streams/subscription/index.ts'
import { tenant } from '../../streams/tenant/index.ts'

/** Entities: each kind of stream with its aggregate, which decides, and the projection that readers are shown. */

type Command = { readonly type: string }

/** The types that belong to one kind of stream; `code` names its rejections. */
export type Kind = {
  readonly state: unknown
  readonly command: Command
  readonly event: AnyEvent
  readonly code: string
  readonly row: ResourceRow
}

/** An interface, so the compiler infers `K` from an argument as a whole. */
export interface Entity<K extends Kind> {
  readonly aggregate: Aggregate<K['state'], K['command'], K['event'], K['code']>
  /** Absent where the stream is no resource of the API. */
  readonly projection?: Projection<K['event'], K['row']>
}

export type KindOf<N> = N extends Entity<infer K> ? K : never

type KindFrom<S, C extends Command, E extends AnyEvent, Code extends string, R extends ResourceRow> = {
  readonly state: S
  readonly command: C
  readonly event: E
  readonly code: Code
  readonly row: R
}

const entity = <S, C extends Command, E extends AnyEvent, Code extends string, R extends ResourceRow = never>(
  aggregate: Aggregate<S, C, E, Code>,
  projection?: Projection<E, R>,
): Entity<KindFrom<S, C, E, Code, R>> => (projection === undefined ? { aggregate } : { aggregate, projection })

export const orderEntity = entity(order, orders)
export const invoiceEntity = entity(invoice, invoices)
export const paymentEntity = entity(payment, payments)
export const referenceEntity = entity(reference)
export const refundEntity = entity(refund)
export const accessEntity = entity(access)
export const operationEntity = entity(operation, operations)
export const apiKeyEntity = entity(apiKey, apiKeys)
export const keyBindingEntity = entity(keyBinding)
export const manifestEntity = entity(manifest)
export const periodEntity = entity(period)
export const tenantEntity = entity(tenant)
export const subscriptionEntity = entity(subscription, subscriptions)

const RESOURCES = [orderEntity, invoiceEntity, paymentEntity, operationEntity, apiKeyEntity, subscriptionEntity]

/** The stream of a resource by its id, to be read only, since its kind is not known. Undefined for any other text. */
export const streamWithId = (id: string): { readonly entity: Entity<Kind>; readonly id: Id<IdPrefix> } | undefined => {
  for (const entity of RESOURCES as readonly unknown[] as readonly Entity<Kind>[])
    if (isId(entity.aggregate.prefix, id)) return { entity, id }
  return undefined
}
