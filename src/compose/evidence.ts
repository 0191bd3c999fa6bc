import { SECOND_MS } from '../lib/time.ts'
import type { Config } from '../settings/config.ts'
import { openHeadFile } from '../evidence/headFile.ts'
import { observe, type Sample } from '../lib/metrics.ts'
import { headSigningFeed, type SigningProgress } from '../processes/headSigning.ts'
import type { FeedSettings } from './feeds.ts'
import { signingKeyFrom } from './signingKey.ts'

/** The figures of this process, while a run of it signs: another process may have the lease before and after. */
const createSigningMetrics = (now: () => number): SigningProgress => {
  let unsigned: number | undefined
  let newestAtMs: number | undefined
  const samples = (value: number | undefined): readonly Sample[] => (value === undefined ? [] : [{ labels: {}, value }])
  observe({
    name: 'ledger.evidence.unsealed.events',
    unit: '',
    help: 'Events in the tree that no signed head covers yet.',
    read: () => samples(unsigned),
  })
  observe({
    name: 'ledger.evidence.head.age',
    unit: 's',
    help: 'Age of the newest signed head.',
    read: () => samples(newestAtMs === undefined ? undefined : (now() - newestAtMs) / SECOND_MS),
  })
  return {
    progressed: (events, headAtMs) => {
      unsigned = events
      newestAtMs = headAtMs
    },
    ended: () => {
      unsigned = undefined
      newestAtMs = undefined
    },
  }
}

/** Opens the feed that signs the log. */
export const openSigning =
  (config: Pick<Config, 'evidence' | 'dataDir'>): Exclude<FeedSettings['openSigning'], 'off'> =>
  services =>
    headSigningFeed({
      ...services,
      headFile: openHeadFile(config.evidence.headsFile),
      signingKey: () => signingKeyFrom(config),
      everyMs: config.evidence.headsEveryMs,
      ...createSigningMetrics(() => services.world.now()),
    })
