import { Presets, SingleBar } from 'cli-progress'

export type Progress = {
  readonly played: () => void
  readonly arrived: (facts: number) => void
  readonly end: () => void
}

/** Lines of a log file, where a bar cannot move. */
const LINE_EVERY_MS = 2_000

/** How far the demo is, on stderr, so that stdout holds the results alone. */
export const startProgress = (invoices: number): Progress => {
  const bar = new SingleBar(
    {
      stream: process.stderr,
      format: '{bar} {value}/{total} invoices, {facts} facts arrived, {duration_formatted}',
      hideCursor: true,
      // A hidden cursor would stay hidden after Ctrl-C: the demo ends the bar itself.
      gracefulExit: false,
      noTTYOutput: true,
      notTTYSchedule: LINE_EVERY_MS,
    },
    Presets.shades_classic,
  )
  bar.start(invoices, 0, { facts: 0 })
  return {
    played: () => bar.increment(),
    arrived: facts => bar.update({ facts }),
    end: () => bar.stop(),
  }
}
