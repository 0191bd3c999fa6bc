import { Presets, SingleBar } from 'cli-progress'
import { printNotice } from './print.ts'

/** Progress of long commands on stderr: a bar on a terminal, a line every few seconds in a pipe, JSON lines with --json. */

export type Progress = {
  /** `total` is absent where it is not known. */
  readonly update: (done: number, total?: number) => void
  /** Ends the progress of one work. Idempotent. */
  readonly end: () => void
}

/** `what` names the work, `unit` that which is counted. */
export type StartProgress = (what: string, unit: string) => Progress

const LINE_EVERY_MS = 2_000

const bars: StartProgress = (what, unit) => {
  const format = `${what} {bar} {value}/{total} ${unit}, {duration_formatted}`
  // The command ends the bar itself, since the cursor would stay hidden after Ctrl-C.
  const options = { stream: process.stderr, format, hideCursor: true, gracefulExit: false, clearOnComplete: true }
  const bar = new SingleBar(options, Presets.shades_classic)
  bar.start(0, 0)
  return {
    update: (done, total) => {
      bar.setTotal(Math.max(done, total ?? 0))
      bar.update(done)
    },
    end: () => bar.stop(),
  }
}

/** The first line comes after LINE_EVERY_MS, so that a short work prints none. */
const lines =
  (lineOf: (what: string, unit: string, done: number, total: number | undefined) => string): StartProgress =>
  (what, unit) => {
    let printedAtMs = performance.now()
    return {
      update: (done, total) => {
        if (performance.now() - printedAtMs < LINE_EVERY_MS) return
        printedAtMs = performance.now()
        printNotice(lineOf(what, unit, done, total))
      },
      end: () => undefined,
    }
  }

const plainLines = lines(
  (what, unit, done, total) => `${what}: ${done}${total === undefined ? '' : `/${total}`} ${unit}`,
)
const jsonLines = lines((what, unit, done, total) => JSON.stringify({ progress: { work: what, unit, done, total } }))

/** The form of progress for this command: JSON with --json, a bar where stderr is a terminal, else plain lines. */
export const progressFor = ({ json }: { readonly json: boolean }): StartProgress => {
  if (json) return jsonLines
  return process.stderr.isTTY ? bars : plainLines
}
