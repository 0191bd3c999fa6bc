import { accountRoutes } from './resources/books/accounts.ts'
import { journalEntryRoutes } from './resources/books/journalEntries.ts'
import { apiKeyRoutes } from './resources/identity/apiKeys.ts'
import { asyncApiRoutes } from './contract/asyncapi.ts'
import { auditEvidenceRoutes } from './resources/auditEvidence.ts'
import { auditRoutes } from './resources/auditRecords.ts'
import { openApiRoute } from './contract/openapi.ts'
import { deadLetterRoutes } from './resources/subscriptions/deadLetters.ts'
import { eventRoutes } from './resources/events/events.ts'
import { exportRoutes } from './resources/exports.ts'
import { factSchemaRoutes } from './contract/factSchemas.ts'
import { healthRoutes } from './resources/health.ts'
import { historyRoutes } from './resources/history.ts'
import { installationRoutes } from './resources/installation.ts'
import { invoiceRoutes } from './resources/invoices.ts'
import { idempotencyKeyRoutes } from './resources/idempotencyKeys.ts'
import { manifestRoutes } from './resources/events/manifest.ts'
import { operationRoutes } from './resources/operations.ts'
import { orderRoutes } from './resources/orders.ts'
import { paymentActionRoutes } from './resources/paymentActions.ts'
import { paymentRoutes } from './resources/payments.ts'
import { periodRoutes } from './resources/books/periods.ts'
import { problemRoutes } from './contract/problemPages.ts'
import { projectionRoutes } from './resources/projections.ts'
import { replayRoutes } from './resources/subscriptions/replays.ts'
import { subscriptionRoutes } from './resources/subscriptions/subscriptions.ts'
import { wellKnownRoutes } from './resources/identity/wellKnown.ts'
import { rootRoutes } from './contract/rootPage.ts'
import { docsRoutes } from './contract/docsPages.ts'
import { versionPageRoutes } from './contract/versionPages.ts'
import type { AnyRoute } from './route.ts'

/** The list of all routes, each of which is declared in its file, and the public exports of src/http. */

const resources: readonly AnyRoute[] = [
  ...orderRoutes,
  ...invoiceRoutes,
  ...paymentRoutes,
  ...paymentActionRoutes,
  ...historyRoutes,
  ...exportRoutes,
  ...operationRoutes,
  ...idempotencyKeyRoutes,
  ...apiKeyRoutes,
  ...eventRoutes,
  ...manifestRoutes,
  ...subscriptionRoutes,
  ...replayRoutes,
  ...deadLetterRoutes,
  ...accountRoutes,
  ...journalEntryRoutes,
  ...periodRoutes,
  ...auditRoutes,
  ...projectionRoutes,
  ...installationRoutes,
  ...auditEvidenceRoutes,
  ...healthRoutes,
  ...wellKnownRoutes,
  ...problemRoutes,
  ...versionPageRoutes,
  ...docsRoutes,
  ...rootRoutes,
  ...factSchemaRoutes,
  ...asyncApiRoutes,
]

/** Every route, in the shape of the newest version. */
export const routes: readonly AnyRoute[] = [...resources, openApiRoute(resources)]

export { type AddressOf, createAddressOf } from './request/clientAddress.ts'
export { createApp } from './server/app.ts'
export type { ConsoleSettings } from './server/consoleMount.ts'
export { createAuthentication, refuseEveryone, type OnRefused } from './access/authentication.ts'
export { createRequestPipeline } from './requestPipeline.ts'
export type { Authenticate } from './access/accessControl.ts'
export { createCursors } from './reading/cursor.ts'
export { createRateLimits } from './admission/rateLimits.ts'
export { createAdmission } from './admission/requestTurn.ts'
export { createConcurrencyLimits } from './admission/concurrencyLimits.ts'
export { createTail } from './reading/tail.ts'
export { followRetiredVersions } from './versions/servedVersions.ts'
export { listen, receive } from './server/server.ts'
export { NEWEST_VERSION, OLDEST_VERSION, type Version, VERSIONS } from './versions/index.ts'
export type { HealthReport, Services } from './services.ts'
export { healthRoutes } from './resources/health.ts'
