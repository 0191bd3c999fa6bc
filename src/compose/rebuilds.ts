import { openDatabase } from '../adapters/postgres/database.ts'
import type { CleanupStack } from '../lib/cleanupStack.ts'
import { readModels } from '../feeds/readModels.ts'
import { runRebuilds } from '../feeds/rebuild/rebuildLoop.ts'
import type { CoreServices } from './feeds.ts'

/** A comparison has two connections beside the one that writes. They are opened when there is a rebuild. */
const POOL_MAX = 4
/** A comparison, and the end of a long transaction, wait longer than requests. */
const STATEMENT_TIMEOUT_MS = 30_000

export const startRebuilds = (
  { databaseUrl }: { readonly databaseUrl: string },
  { store, ledger: { world }, logger }: Pick<CoreServices, 'store' | 'ledger' | 'logger'>,
  cleanup: Pick<CleanupStack, 'defer'>,
): void => {
  const database = openDatabase({
    connectionString: databaseUrl,
    poolMax: POOL_MAX,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    applicationName: 'ledger-rebuild',
  })
  cleanup.defer(() => database.close())
  const stop = new AbortController()
  const running = runRebuilds({ database, store, world, logger, models: readModels }, stop.signal)
  cleanup.defer(() => {
    stop.abort()
    return running
  })
}
