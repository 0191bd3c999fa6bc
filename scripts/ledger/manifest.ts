import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { FACTS, sealManifest, type SealResult, type SealDependencies } from '../../src/commands/manifests.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { interruptible } from './interruption.ts'
import { counted, print, printJson } from './print.ts'
import { progressFor } from './progress.ts'
import { aligned } from './table.ts'
import { findConnections, howToStart } from './connections.ts'

/** `manifest`: seals the facts since the last manifest without waiting for the end of the hour. */

type Options = { readonly topic?: string; readonly json: boolean }

const AUTHORITY = 'operator'
/**
 * The wait for the projector, so that events committed before the command are included. A projector that is further
 * behind is not awaited.
 */
const CATCH_UP_MAX_MS = 2_000
const POLL_MS = 50

type Line = SealResult & { readonly topic: string }

const untilCaughtUp = async ({ ledger, projectedUpTo: reached }: SealDependencies): Promise<void> => {
  const head = await ledger.store.head()
  const deadlineMs = performance.now() + CATCH_UP_MAX_MS
  while ((await reached()) < head && performance.now() < deadlineMs) await sleep(POLL_MS)
}

/** A topic that was sealed before an interruption has nothing new when the command is repeated. */
const seal = async (topics: readonly string[], options: Options, signal: AbortSignal): Promise<readonly Line[]> => {
  const { config, addresses } = await findConnections()
  const { event_store, postgres } = addresses
  if (event_store === null || postgres === null) throw new StartupError(howToStart(config.dataDir))
  const store = openEventStore({ connectionString: event_store })
  const database = openDatabase({ connectionString: postgres, applicationName: 'ledger-manifest' })
  const progress = progressFor(options)('manifest', 'topics', { total: topics.length })
  try {
    const { sql } = database
    const dependencies = { ledger: createLedger(store, realWorld()), sql, projectedUpTo: () => positionOf(sql, FACTS) }
    await untilCaughtUp(dependencies)
    const lines: Line[] = []
    for (const topic of topics) {
      signal.throwIfAborted()
      lines.push({ topic, ...(await sealManifest(dependencies, topic, AUTHORITY)) })
      progress.advance(1)
    }
    return lines
  } finally {
    progress.end()
    await Promise.all([store.close(), database.close()])
  }
}

const cellsOf = ({ topic, sealed, to }: Line): readonly string[] => {
  if (sealed === undefined) return [topic, `nothing new since position ${to}`]
  const { from_position, to_position, count, sha256, missing = [] } = sealed
  const held = missing.length === 0 ? [] : [`${missing.length} held back`]
  return [topic, `positions ${from_position} to ${to_position}`, counted(count, 'fact'), `sha256 ${sha256}`, ...held]
}

const run = async (options: Options): Promise<void> => {
  const { topic, json } = options
  if (topic !== undefined && !MANIFEST_TOPICS.includes(topic))
    throw new StartupError(`There is no topic ${JSON.stringify(topic)}: ${MANIFEST_TOPICS.join(', ')}.`)
  const topics = topic === undefined ? MANIFEST_TOPICS : [topic]
  const lines = await interruptible(signal => seal(topics, options, signal))
  if (lines === undefined) return
  if (json) return printJson({ items: lines.map(line => ({ topic: line.topic, sealed: line.sealed ?? null })) })
  for (const line of aligned(lines.map(cellsOf))) print(line)
}

export const manifestCommand = new Command('manifest')
  .description(
    'Seals the facts of all tenants since the last manifest: publishes their range, count and hash as a fact.',
  )
  .option('--topic <topic>', 'only this topic, such as ledger.invoice.v1')
  .option(
    '--json',
    'print JSON: {items: [{topic, sealed: {from_position, to_position, count, sha256, missing?}}]}',
    false,
  )
  .addHelpText(
    'after',
    '\nThe service does this at the end of each hour. The manifests are published on ledger.manifest.v1; those of a topic\n' +
      'never overlap and leave no gap. If the log has not moved, there is no new manifest: sealed is null.',
  )
  .action(run)
