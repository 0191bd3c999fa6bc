import type { TreeCopy } from './treeCopy.ts'
import type { Mutant } from './mutants.ts'
import { type Ran, run } from './runCommand.ts'
import type { Command, Failure, Stage } from './stages.ts'

/** Plays one planted bug in one stage. */

/**
 * `untouched`: nothing of the stage loads the code. `hung`: the stage went on until its limit. `unsound`: what failed
 * with the bug does not fail again, or fails without it too.
 */
export type Verdict = 'caught' | 'hung' | 'missed' | 'untouched' | 'skipped' | 'unsound'

export type Result = {
  readonly stage: string
  readonly verdict: Verdict
  readonly seconds: number
  /** The test or seed that failed. */
  readonly by?: string
}

export type Session = { readonly copy: TreeCopy; readonly signal: AbortSignal }

const MS_PER_SECOND = 1_000
/** Tests have time limits of their own, and there are few in any stage. */
const LIMIT_MS = 900_000
/** A stage with a bug may take this many times what it takes without: the machine may do other work meanwhile. */
const LIMIT_FACTOR = 10
const LIMIT_MIN_MS = 120_000
/** A test may fail for the load of the machine alone. */
const CLEAN_TRIES_MAX = 3

/** How long a command of the stage may take. Throws when the stage fails without any bug. */
export const limitOf = async ({ name, sample }: Stage, { copy, signal }: Session): Promise<number> => {
  if (sample === undefined) return LIMIT_MS
  const { code, output, seconds } = await run(sample.command, { ...copy, limitMs: LIMIT_MS, signal })
  if (code !== 0) throw new Error(`The stage "${name}" fails without any bug:\n${output}`)
  return Math.max(LIMIT_MIN_MS, seconds * MS_PER_SECOND * sample.times * LIMIT_FACTOR)
}

const passes = async (command: Command, { copy, signal }: Session): Promise<boolean> => {
  for (let tries = 0; tries < CLEAN_TRIES_MAX; tries += 1)
    if ((await run(command, { ...copy, limitMs: LIMIT_MS, signal })).code === 0) return true
  return false
}

/** Commands and whether they pass without a bug, so that each is run once for all that it catches. */
export type Clean = Map<string, boolean>

const isClean = async (command: Command, clean: Clean, session: Session): Promise<boolean> => {
  const key = command.join(' ')
  const isKnown = clean.get(key) ?? (await passes(command, session))
  clean.set(key, isKnown)
  return isKnown
}

export type Place = { readonly stage: Stage; readonly limitMs: number; readonly clean: Clean }

const runPlanted = async (bug: Mutant, command: Command, limitMs: number, { copy, signal }: Session): Promise<Ran> => {
  const takeOut = await copy.plant(bug)
  const ran = await run(command, { ...copy, limitMs, signal })
  await takeOut()
  return ran
}

const verdictOn = async (bug: Mutant, { again, by }: Failure, { limitMs, clean }: Place, session: Session) => {
  const isLasting = (await runPlanted(bug, again, limitMs, session)).code !== 0
  return { by, verdict: isLasting && (await isClean(again, clean, session)) ? 'caught' : 'unsound' } as const
}

export const runStage = async (bug: Mutant, place: Place, session: Session): Promise<Result> => {
  const stage = place.stage.name
  const commands = place.stage.commandsFor(bug)
  if (commands.length === 0) return { stage, verdict: 'untouched', seconds: 0 }
  let seconds = 0
  for (const command of commands) {
    const ran = await runPlanted(bug, command, place.limitMs, session)
    seconds += ran.seconds
    if (ran.isLate) return { stage, seconds, verdict: 'hung' }
    if (ran.code === 0) continue
    const failure = await place.stage.failureIn(command, ran.output)
    return { stage, seconds, ...(await verdictOn(bug, failure, place, session)) }
  }
  return { stage, verdict: 'missed', seconds }
}
