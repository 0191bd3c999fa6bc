import { createFeedStates } from '../../src/compose/feeds.ts'
import { observeService } from '../../src/compose/serviceMetrics.ts'
import { type Feed, runFeeds } from '../../src/feeds/feedLoop.ts'
import { metricsText } from '../../src/lib/metrics.ts'
import type { Database, World } from '../../src/ports.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { createSleepers } from '../support/sleepers.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

/** A feed whose work beside the loop fails again and again, as a scraper sees it. */

const SCRAPE_EVERY_MS = 10_000
const SCRAPES = 60
/** Out of step with the scrapes, with the 5 s after which a stopped feed tries again. */
const FAILS_AFTER_MS = 8_000
const SETTLED_LOOPS = 20

const logger = { info: () => undefined, warn: () => undefined, error: () => undefined }
const database = {
  sql: async () => [],
  withLease: (_name, signal, work) => work({ epoch: 1n, signal }),
} as Partial<Database> as Database

const feedIn = (world: World): Feed => ({
  name: 'subscriptions',
  beginRun: async (_epoch, signal) => ({
    after: 'start',
    processBatch: async () => undefined,
    background: async () => {
      await world.sleep(FAILS_AFTER_MS, signal)
      if (!signal.aborted) throw new Error('One subscription has failed, and all of them end.')
    },
  }),
})

const settled = async (): Promise<void> => {
  for (let loop = 0; loop < SETTLED_LOOPS; loop += 1) await new Promise(resolve => setImmediate(resolve))
}

/** The metrics of feeds during ten minutes, in the text for Prometheus. */
export const failingFeedScrapes = async (): Promise<readonly string[]> => {
  const virtual = createVirtualWorld()
  const sleepers = createSleepers(virtual)
  const world = { ...virtual, sleep: sleepers.sleep }
  const store = createMemoryLog(world.now).open()
  const stop = new AbortController()
  const { states, report, stopObserving } = createFeedStates({ database, logger }, [])
  const stopObservingService = observeService({
    database,
    ledger: { store, world },
    feeds: () => states.values(),
    runsFeeds: true,
    bytesPerDay: 1,
  })
  const running = runFeeds('subscriptions', [feedIn(world)], { store, database, world, report }, stop.signal)
  const scrapes: string[] = []
  for (let scrape = 1; scrape <= SCRAPES; scrape += 1) {
    for (await settled(); sleepers.wakeNext(scrape * SCRAPE_EVERY_MS); await settled());
    virtual.pass(scrape * SCRAPE_EVERY_MS - virtual.monotonicMs())
    const lines = (await metricsText({ process: 'feeds' })).split('\n')
    scrapes.push(lines.filter(line => line.startsWith('ledger_feed_')).join('\n'))
  }
  stop.abort()
  await running
  stopObserving()
  stopObservingService()
  return scrapes
}
