import { Presets, SingleBar } from 'cli-progress'

/** The progress bar of the demo. */

export type Progress = {
  readonly invoiceDone: () => void
  readonly factsArrived: (facts: number) => void
  readonly end: () => void
}

/** The interval of progress lines in a log file, where a bar cannot move. */
const LINE_EVERY_MS = 2_000

/** Progress on stderr, so that stdout has the results only. */
export const startProgress = (invoices: number): Progress => {
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
    factsArrived: facts => bar.update({ facts }),
    end: () => bar.stop(),
  }
}
