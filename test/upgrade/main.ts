import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { stopSignal } from '../../scripts/demo/stopSignal.ts'
import { createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { duration } from '../../src/settings/values.ts'
import { removeFolder } from '../support/folders.ts'
import { lastRelease, openBuild } from '../support/builds.ts'
import { rehearse } from './rehearsal.ts'

/** The command `npm run upgrade`: rehearses an upgrade, and the way back, on servers and data of its own. */

type Options = { readonly from?: string; readonly to?: string; readonly halfWay: number }

const durationMs = (text: string): number => {
  const { success, data } = duration.safeParse(text)
  if (!success) throw new InvalidArgumentError('A duration such as 60s, 10m or 1h.')
  return data
}

const beganMs = performance.now()
const report = (line: string): void => {
  const seconds = (performance.now() - beganMs) / 1_000
  process.stdout.write(`${seconds.toFixed(1).padStart(7)}  ${line}\n`)
}
const complain = (error: unknown): void =>
  void process.stderr.write(
    `${error instanceof StartupError ? error.message : String((error as Error).stack ?? error)}\n`,
  )

const main = async ({ from, to, halfWay }: Options, signal: AbortSignal): Promise<number> => {
  const cleanup = createCleanupStack(complain)
  const over = new AbortController()
  try {
    const folder = await mkdtemp(join(tmpdir(), 'ledger-upgrade-'))
    cleanup.defer(() => removeFolder(folder))
    const builds = {
      from: await openBuild(from ?? (await lastRelease()), folder, cleanup),
      to: await openBuild(to, folder, cleanup),
    }
    report(`from ${builds.from.name} to ${builds.to.name}`)
    const rehearsal = { ...builds, halfWayMs: halfWay, folder, signal: AbortSignal.any([signal, over.signal]), report }
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('stopped'))),
    )
    aborted.catch(() => undefined)
    const findings = await Promise.race([rehearse(rehearsal, cleanup), aborted])
    for (const finding of findings) process.stderr.write(`${finding}\n`)
    return findings.length === 0 ? 0 : 1
  } catch (error) {
    if (signal.aborted) return Number(signal.reason)
    complain(error)
    return 1
  } finally {
    over.abort()
    await cleanup.run()
  }
}

await new Command('npm run upgrade --')
  .description(
    'Rehearses an upgrade: two builds on one event store and one Postgres, which it starts itself, under load. Replaces two\n' +
      'instances of the feeds and two of the API one by one, forward, back, half way and forward again, and checks that nothing\n' +
      'was lost, doubled or refused.',
  )
  .option(
    '--from <revision>',
    'the build that is replaced; by default the newest tag v*, and HEAD^ as long as there is none',
  )
  .option('--to <revision>', 'the build that replaces it; by default the working tree')
  .option('--half-way <duration>', 'how long both builds stay side by side, such as 60s, 10m or 1h', durationMs, 60_000)
  .addHelpText(
    'after',
    '\nRevisions are checked out with git worktree into a temporary folder, and run with the dependencies of this one. Ctrl-C\n' +
      'removes everything. The exit code is 1 if anything was lost, doubled or refused. The report counts what clients must\n' +
      'survive while an instance is replaced: connections reset or refused, and answers with `shutting_down` or `overloaded`.\n' +
      'They are no findings if the same request, with the same key, succeeds afterwards; every `other` failure is one.',
  )
  .action(async (options: Options) => {
    process.exitCode = await main(options, stopSignal())
    process.exit()
  })
  .parseAsync()
