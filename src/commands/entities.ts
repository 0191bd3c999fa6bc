import { apiKeys } from '../../projections/apiKeys/projection.ts'
import { invoices } from '../../projections/invoices/projection.ts'
import { operations } from '../../projections/operations/projection.ts'
import { orders } from '../../projections/orders/projection.ts'
import { payments } from '../../projections/payments/projection.ts'
import type { Projection, ResourceRow } from '../../projections/projection.ts'
import { subscriptions } from '../../projections/subscriptions/projection.ts'
import type { Aggregate } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { access } from '../../streams/access/index.ts'
import { apiKey } from '../../streams/apiKey/index.ts'
import { invoice } from '../../streams/invoice/index.ts'
import { keyBinding } from '../../streams/keyBinding/index.ts'
import { manifest } from '../../streams/manifest/index.ts'
import { operation } from '../../streams/operation/index.ts'
import { order } from '../../streams/order/index.ts'
import { payment } from '../../streams/payment/index.ts'
import { reference } from '../../streams/reference/index.ts'
import { refund } from '../../streams/refund/index.ts'
import { secret } from '../../streams/secret/index.ts'
import { subscription } from '../../streams/subscription/index.ts'
import { tenant } from '../../streams/tenant/index.ts'

/** A stream seen from both sides: what decides, and what a reader is shown. One read of the stream serves both. */
export type Entity<S, C, E extends AnyEvent, Code extends string, R extends ResourceRow> = {
  readonly aggregate: Aggregate<S, C, E, Code>
  /** Absent where a stream is nobody's resource. */
  readonly projection?: Projection<E, R>
}

export const orderEntity = { aggregate: order, projection: orders }
export const invoiceEntity = { aggregate: invoice, projection: invoices }
export const paymentEntity = { aggregate: payment, projection: payments }
export const referenceEntity = { aggregate: reference }
export const refundEntity = { aggregate: refund }
export const accessEntity = { aggregate: access }
export const operationEntity = { aggregate: operation, projection: operations }
export const apiKeyEntity = { aggregate: apiKey, projection: apiKeys }
export const keyBindingEntity = { aggregate: keyBinding }
export const manifestEntity = { aggregate: manifest }
export const secretEntity = { aggregate: secret }
export const tenantEntity = { aggregate: tenant }
export const subscriptionEntity = { aggregate: subscription, projection: subscriptions }
