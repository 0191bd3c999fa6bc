import { setTimeout as sleep } from 'node:timers/promises'
import { type Books, differencesIn, oursOf, sumsOfFacts, sumsOfLists } from './books.ts'
import type { Call } from './caller.ts'
import { createFactReader, type FactReader, missingFacts } from './facts.ts'
import { DemoFailure } from './failure.ts'
import { type PlannedInvoice, sumsOf } from './plan.ts'
import { type Callers, type Played, play, type Retries } from './play.ts'
import { type Progress, startProgress } from './progress.ts'

export type Performance = {
  readonly played: readonly Played[]
  readonly retries: Retries
  readonly books: Books
  readonly factsSeen: number
  /** Facts that earlier runs had caused. */
  readonly factsBefore: number
  readonly duplicates: number
}

const FACTS_MAX_MS = 30_000
const LISTS_MAX_MS = 15_000
const POLL_MS = 200

/** Reads what arrives for as long as `work` takes. Whichever of the two fails first is the one that is told. */
const readingAlong = async <T>(reader: FactReader, progress: Progress, work: Promise<T>): Promise<T> => {
  const ended = new AbortController()
  const read = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await reader.readOn()
      progress.arrived(reader.facts.length)
      await sleep(POLL_MS)
    }
  }
  const [result] = await Promise.all([work.finally(() => ended.abort()), read()])
  return result
}

const untilArrived = async (reader: FactReader, progress: Progress, played: readonly Played[]): Promise<void> => {
  const givenUpAtMs = performance.now() + FACTS_MAX_MS
  for (;;) {
    await reader.readOn()
    progress.arrived(reader.facts.length)
    const missing = missingFacts(played, reader.facts)
    if (missing.length === 0) return
    if (performance.now() > givenUpAtMs)
      throw new DemoFailure(
        `${missing.length} facts did not arrive within ${FACTS_MAX_MS / 1_000} s of the last command; the first: ${missing[0]}.`,
      )
    await sleep(POLL_MS)
  }
}

/** All facts have arrived, and the lists follow the log at a little distance: they get a moment to say the same. */
const readBooks = async (
  call: Call,
  plan: readonly PlannedInvoice[],
  { played, reader }: { played: readonly Played[]; reader: FactReader },
): Promise<Books> => {
  const ours = oursOf(played)
  const planned = sumsOf(plan)
  const givenUpAtMs = performance.now() + LISTS_MAX_MS
  for (;;) {
    const books = { planned, lists: await sumsOfLists(call, ours), facts: sumsOfFacts(reader.facts, ours) }
    const agree = differencesIn({ ...books, planned: books.facts }).length === 0
    if (agree || performance.now() > givenUpAtMs) return books
    await sleep(POLL_MS)
  }
}

/** The whole demo against a running service. Throws a DemoFailure when something is refused, or does not arrive. */
export const perform = async (callers: Callers, plan: readonly PlannedInvoice[]): Promise<Performance> => {
  const reader = createFactReader(callers.clerk)
  await reader.readOn()
  const factsBefore = reader.facts.length
  const progress = startProgress(plan.length)
  try {
    const { played, retries } = await readingAlong(reader, progress, play(callers, plan, progress.played))
    await untilArrived(reader, progress, played)
    progress.end()
    const books = await readBooks(callers.clerk, plan, { played, reader })
    return {
      played,
      retries,
      books,
      factsSeen: reader.facts.length,
      factsBefore,
      duplicates: reader.duplicates,
    }
  } finally {
    progress.end()
  }
}
