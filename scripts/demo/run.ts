import { setTimeout as sleep } from 'node:timers/promises'
import { Presets, SingleBar } from 'cli-progress'
import { type Reconciliation, differencesIn, demoIdsOf, sumsOfFacts, sumsOfLists } from './reconciliation.ts'
import type { LedgerClient } from '../client/src/index.ts'
import { type DemoBooks, differencesInBooks, readBooks } from './books.ts'
import { createFactReader, type FactReader, missingFacts } from './factReader.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { type PlannedInvoice, sumsOf } from './plan.ts'
import { type Identities, type InvoiceRun, runPlan } from './planExecution.ts'

const FACTS_MAX_MS = 30_000
const LISTS_MAX_MS = 15_000
const POLL_MS = 200
/** The interval of progress lines in a log file, where a bar cannot move. */
const LINE_EVERY_MS = 2_000

/** A bar on stderr, so that stdout has the results only. */
const startProgress = (invoices: number) => {
  const bar = new SingleBar(
    {
      stream: process.stderr,
      format: '{bar} {value}/{total} invoices, {facts} facts arrived, {duration_formatted}',
      hideCursor: true,
      // The demo stops the bar itself, since the cursor would stay hidden after Ctrl-C.
      gracefulExit: false,
      noTTYOutput: true,
      notTTYSchedule: LINE_EVERY_MS,
    },
    Presets.shades_classic,
  )
  bar.start(invoices, 0, { facts: 0 })
  return {
    invoiceDone: () => bar.increment(),
    factsArrived: (facts: number) => bar.update({ facts }),
    end: () => bar.stop(),
  }
}
type Progress = ReturnType<typeof startProgress>

/** Reads facts until `work` settles. Rejects with the first error of either. */
const readFactsDuring = async <T>(reader: FactReader, progress: Progress, work: Promise<T>): Promise<T> => {
  const ended = new AbortController()
  const read = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await reader.readToEnd()
      progress.factsArrived(reader.facts.length)
      await sleep(POLL_MS)
    }
  }
  const [result] = await Promise.all([work.finally(() => ended.abort()), read()])
  return result
}

const waitForFacts = async (reader: FactReader, progress: Progress, runs: readonly InvoiceRun[]): Promise<void> => {
  const deadlineMs = performance.now() + FACTS_MAX_MS
  for (;;) {
    await reader.readToEnd()
    progress.factsArrived(reader.facts.length)
    const missing = missingFacts(runs, reader.facts)
    if (missing.length === 0) return
    if (performance.now() > deadlineMs)
      throw new StartupError(
        `${missing.length} facts did not arrive within ${FACTS_MAX_MS / 1_000} s of the last command; the first: ${missing[0]}.`,
      )
    await sleep(POLL_MS)
  }
}

/** The lists and the books lag: they are read until they agree with the facts or LISTS_MAX_MS have passed. */
const reconcile = async (
  ledger: LedgerClient,
  plan: readonly PlannedInvoice[],
  { runs, reader }: { runs: readonly InvoiceRun[]; reader: FactReader },
): Promise<{ reconciliation: Reconciliation; books: DemoBooks }> => {
  const ids = demoIdsOf(runs)
  const planned = sumsOf(plan)
  const deadlineMs = performance.now() + LISTS_MAX_MS
  for (;;) {
    const reconciliation = { planned, lists: await sumsOfLists(ledger, ids), facts: sumsOfFacts(reader.facts, ids) }
    const books = await readBooks(ledger, ids.invoices)
    const { facts } = reconciliation
    const agree =
      differencesIn({ ...reconciliation, planned: facts }).length + differencesInBooks(books, facts).length === 0
    if (agree || performance.now() > deadlineMs) return { reconciliation, books }
    await sleep(POLL_MS)
  }
}

/** Throws a StartupError for a rejection or a fact that does not arrive. */
export const runDemo = async (callers: Identities, plan: readonly PlannedInvoice[]) => {
  const reader = createFactReader(callers.clerk)
  await reader.readToEnd()
  const factsBefore = reader.facts.length
  const progress = startProgress(plan.length)
  try {
    const { runs, retries } = await readFactsDuring(reader, progress, runPlan(callers, plan, progress.invoiceDone))
    await waitForFacts(reader, progress, runs)
    progress.end()
    const { reconciliation, books } = await reconcile(callers.clerk, plan, { runs, reader })
    return {
      runs,
      retries,
      reconciliation,
      books,
      factsSeen: reader.facts.length,
      /** Facts of earlier runs. */
      factsBefore,
      duplicates: reader.duplicates,
    }
  } finally {
    progress.end()
  }
}
export type DemoResult = Awaited<ReturnType<typeof runDemo>>
