import type { TreeCopy } from './treeCopy.ts'
import type { Mutant } from './mutant.ts'
import { type CommandResult, runCommand } from './runCommand.ts'
import type { Command, Failure, Stage } from './stages.ts'

/** One stage of tests, run on the copy with one planted bug. */

/**
 * `caught`: a test fails with the bug and passes without it. `hung`: the tests did not end within their time limit.
 * `unconfirmed`: the failed test does not fail again with the bug, or also fails without it. `not loaded`: no test of the
 * stage loads the code with the bug. `skipped`: an earlier stage has caught the bug (`--first`).
 */
export type Verdict = 'caught' | 'hung' | 'missed' | 'not loaded' | 'skipped' | 'unconfirmed'

export type Result = {
  readonly stage: string
  readonly verdict: Verdict
  readonly seconds: number
  /** The test or seed that failed. */
  readonly by?: string
}

export type Session = { readonly copy: TreeCopy; readonly signal: AbortSignal }

const MS_PER_SECOND = 1_000
/** A limit for commands whose usual duration is unknown; the tests themselves have shorter limits. */
const LIMIT_MS = 900_000
/** A command with a bug may take this many times as long as without, because the machine may do other work meanwhile. */
const LIMIT_FACTOR = 10
const LIMIT_MIN_MS = 120_000
/** A test without a bug is repeated, because it may fail for the load of the machine alone. */
const TRIES_WITHOUT_BUG_MAX = 3

/** The time limit for a command of the stage. Throws when the stage fails without any bug. */
export const timeLimitOf = async ({ name, sample }: Stage, { copy, signal }: Session): Promise<number> => {
  if (sample === undefined) return LIMIT_MS
  const { code, output, seconds } = await runCommand(sample.command, { ...copy, limitMs: LIMIT_MS, signal })
  if (code !== 0) throw new Error(`The stage "${name}" fails without any bug:\n${output}`)
  return Math.max(LIMIT_MIN_MS, seconds * MS_PER_SECOND * sample.times * LIMIT_FACTOR)
}

const passesInSomeTry = async (command: Command, { copy, signal }: Session): Promise<boolean> => {
  for (let tries = 0; tries < TRIES_WITHOUT_BUG_MAX; tries += 1)
    if ((await runCommand(command, { ...copy, limitMs: LIMIT_MS, signal })).code === 0) return true
  return false
}

/** By command, whether it passes without a bug, so that each command is run once without any. */
export type CleanResults = Map<string, boolean>

const passesWithoutBug = async (command: Command, known: CleanResults, session: Session): Promise<boolean> => {
  const key = command.join(' ')
  const passes = known.get(key) ?? (await passesInSomeTry(command, session))
  known.set(key, passes)
  return passes
}

export type PreparedStage = { readonly stage: Stage; readonly limitMs: number; readonly cleanResults: CleanResults }

const runWithBug = async (
  bug: Mutant,
  command: Command,
  limitMs: number,
  { copy, signal }: Session,
): Promise<CommandResult> => {
  const removeBug = await copy.plant(bug)
  const result = await runCommand(command, { ...copy, limitMs, signal })
  await removeBug()
  return result
}

const confirm = async (
  bug: Mutant,
  { confirmation, by }: Failure,
  { limitMs, cleanResults }: PreparedStage,
  session: Session,
) => {
  const failsAgain = (await runWithBug(bug, confirmation, limitMs, session)).code !== 0
  return {
    by,
    verdict: failsAgain && (await passesWithoutBug(confirmation, cleanResults, session)) ? 'caught' : 'unconfirmed',
  } as const
}

export const runStage = async (bug: Mutant, prepared: PreparedStage, session: Session): Promise<Result> => {
  const stage = prepared.stage.name
  const commands = prepared.stage.commandsFor(bug)
  if (commands.length === 0) return { stage, verdict: 'not loaded', seconds: 0 }
  let seconds = 0
  for (const command of commands) {
    const result = await runWithBug(bug, command, prepared.limitMs, session)
    seconds += result.seconds
    if (result.isLate) return { stage, seconds, verdict: 'hung' }
    if (result.code === 0) continue
    const failure = await prepared.stage.failureIn(command, result.output)
    return { stage, seconds, ...(await confirm(bug, failure, prepared, session)) }
  }
  return { stage, verdict: 'missed', seconds }
}
