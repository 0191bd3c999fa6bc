import { apiKeyRoutes } from './apiKeys.ts'
import { asyncApiRoutes } from './asyncapi.ts'
import { auditRoutes } from './audit.ts'
import { contractRoute } from './contract.ts'
import { deadLetterRoutes } from './deadLetters.ts'
import { eventRoutes } from './events.ts'
import { exportRoutes } from './exports.ts'
import { factSchemaRoutes } from './factSchemas.ts'
import { healthRoutes } from './health.ts'
import { historyRoutes } from './history.ts'
import { invoiceRoutes } from './invoices.ts'
import { keyRoutes } from './keys.ts'
import { manifestRoutes } from './manifest.ts'
import { operationRoutes } from './operations.ts'
import { orderRoutes } from './orders.ts'
import { paymentActionRoutes } from './paymentActions.ts'
import { paymentRoutes } from './payments.ts'
import { problemRoutes } from './problems.ts'
import { replayRoutes } from './replays.ts'
import { subscriptionRoutes } from './subscriptions.ts'
import { wellKnownRoutes } from './wellKnown.ts'
import type { AnyRoute } from './route.ts'

const resources: readonly AnyRoute[] = [
  ...orderRoutes,
  ...invoiceRoutes,
  ...paymentRoutes,
  ...paymentActionRoutes,
  ...historyRoutes,
  ...exportRoutes,
  ...operationRoutes,
  ...keyRoutes,
  ...apiKeyRoutes,
  ...eventRoutes,
  ...manifestRoutes,
  ...subscriptionRoutes,
  ...replayRoutes,
  ...deadLetterRoutes,
  ...auditRoutes,
  ...healthRoutes,
  ...wellKnownRoutes,
  ...problemRoutes,
  ...factSchemaRoutes,
  ...asyncApiRoutes,
]

/** Every endpoint of the service, in one list. */
export const routes: readonly AnyRoute[] = [...resources, contractRoute(resources)]

export { type AddressOf, createAddressOf } from './address.ts'
export { createApp } from './app.ts'
export { createAuthentication, nobody, type OnRefused } from './authentication.ts'
export { createBoundary } from './boundary.ts'
export type { Authenticate } from './gate.ts'
export { createCursors } from './cursor.ts'
export { createLimits } from './limits.ts'
export { createPace } from './pace.ts'
export { createShares } from './shares.ts'
export { createTail, TAIL_POOL_MAX } from './tail.ts'
export { listen } from './server.ts'
export type { HealthReport, Services } from './route.ts'
export { healthRoutes } from './health.ts'
