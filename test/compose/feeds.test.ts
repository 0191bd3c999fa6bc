import { expect } from 'chai'
import { createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { startFeeds } from '../../src/compose/feeds.ts'
import { observeService } from '../../src/compose/serviceMetrics.ts'
import { hasSigningKey } from '../../src/compose/signingKey.ts'
import { metricsText } from '../../src/lib/metrics.ts'
import type { Database } from '../../src/ports.ts'
import { createMemoryLog } from '../support/memoryStore.ts'

const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A database in which other processes have every lease. */
const createBusyDatabase = () => {
  const statements: unknown[][] = []
  const database = {
    sql: async (text: string, values: readonly unknown[] = []) => {
      statements.push([text, ...values])
      return []
    },
    withLease: (_: string, signal: AbortSignal) =>
      new Promise<void>(resolve => signal.addEventListener('abort', () => resolve())),
  } as Partial<Database> as Database
  return { database, statements }
}

describe('the sealing without a signing key', () => {
  it('is off in production, not stopped, so that no alert fires', async () => {
    const { database, statements } = createBusyDatabase()
    const store = createMemoryLog().open()
    const ledger = createLedger(store, realWorld())
    const cleanup = createCleanupStack(error => expect.fail(String(error)))
    const settings = { manifestEveryMs: 1, subscriptionTopicBytes: 1, subscriptionConfirmationMs: 1 }
    const services = { database, store, ledger, logger, schemaBaseUrl: '' }
    const states = await startFeeds({ ...settings, roles: ['worker'], openSigning: 'off' }, services, cleanup)
    const feeds = () => states.values()
    const stopObserving = observeService({ database, ledger, feeds, runsFeeds: true, bytesPerDay: 1 })
    const text = await metricsText({})
    stopObserving()
    await cleanup.run()
    expect(states.get('sealing')).to.deep.equal({ name: 'sealing', state: 'off', position: 0n })
    expect(text).to.include('ledger_feed_state{feed="settlement",state="waiting"} 1')
    expect(text).not.to.include('ledger_feed_state{feed="sealing"')
    // A key that was there before, and could not be used, is no finding of doctor any more.
    expect(statements).to.deep.include(['delete from feed_errors where name = $1', 'sealing'])
  })

  it('has a key of the data directory outside production', () => {
    const evidence = { headsFile: '/heads', headsEveryMs: 1 }
    const given = { ...evidence, signingKey: 'key' }
    expect([
      hasSigningKey({ ...evidence, inProduction: true }),
      hasSigningKey({ ...given, inProduction: true }),
      hasSigningKey({ ...evidence, inProduction: false }),
    ]).to.deep.equal([false, true, true])
  })
})
