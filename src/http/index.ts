import { auditRoutes } from './audit.ts'
import { contractRoute } from './contract.ts'
import { eventRoutes } from './events.ts'
import { exportRoutes } from './exports.ts'
import { healthRoutes } from './health.ts'
import { historyRoutes } from './history.ts'
import { invoiceRoutes } from './invoices.ts'
import { keyRoutes } from './keys.ts'
import { operationRoutes } from './operations.ts'
import { orderRoutes } from './orders.ts'
import { paymentActionRoutes } from './paymentActions.ts'
import { paymentRoutes } from './payments.ts'
import { problemRoutes } from './problems.ts'
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
  ...eventRoutes,
  ...auditRoutes,
  ...healthRoutes,
  ...wellKnownRoutes,
  ...problemRoutes,
]

/** Every endpoint of the service, in one list. */
export const routes: readonly AnyRoute[] = [...resources, contractRoute(resources)]

export { createApp } from './app.ts'
export { bearerAuthentication, nobody } from './authentication.ts'
export { type Authenticate, createBoundary } from './boundary.ts'
export { createCursors } from './cursor.ts'
export { createLimits } from './limits.ts'
export { listen } from './server.ts'
export type { HealthReport, Services } from './route.ts'
export { healthRoutes } from './health.ts'
