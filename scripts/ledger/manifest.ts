import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import { FACTS, sealManifest, type SealResult, type SealDependencies } from '../../src/commands/manifests.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { interruptible } from './interruption.ts'
import { counted, jsonOption, printJson } from './print.ts'
import { progressFor } from './progress.ts'
import { withStores } from './stores.ts'
import { printTable } from './table.ts'

type Options = { readonly topic?: string; readonly json: boolean }

const AUTHORITY = 'operator'
/** So that events committed before the command are included; a projector that is further behind is not awaited. */
const CATCH_UP_MAX_MS = 2_000
const POLL_MS = 50

type Line = SealResult & { readonly topic: string }

const untilCaughtUp = async ({ ledger, projectedUpTo: reached }: SealDependencies): Promise<void> => {
  const head = await ledger.store.head()
  const deadlineMs = performance.now() + CATCH_UP_MAX_MS
  while ((await reached()) < head && performance.now() < deadlineMs) await sleep(POLL_MS)
}

/** A topic that was sealed before an interruption has nothing new when the command is repeated. */
const seal = (topics: readonly string[], options: Options, signal: AbortSignal): Promise<readonly Line[]> =>
  withStores('manifest', async ({ ledger, database: { sql } }) => {
    const progress = progressFor(options)('manifest', 'topics', { total: topics.length })
    try {
      const dependencies = { ledger, sql, projectedUpTo: () => positionOf(sql, FACTS) }
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
    }
  })

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
  printTable(lines.map(cellsOf))
}

export const manifestCommand = new Command('manifest')
  .description(
    'Seals the facts of all tenants since the last manifest: publishes their range, count and hash as a fact.',
  )
  .option('--topic <topic>', 'only this topic, such as ledger.invoice.v1')
  .addOption(
    jsonOption('print JSON: {items: [{topic, sealed: {from_position, to_position, count, sha256, missing?}}]}'),
  )
  .addHelpText(
    'after',
    '\nThe service does this at the end of each hour. The manifests are published on ledger.manifest.v1; those of a topic\n' +
      'never overlap and leave no gap. If the log has not moved, there is no new manifest: sealed is null.',
  )
  .action(run)
