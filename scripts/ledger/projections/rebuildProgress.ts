import { Presets, SingleBar } from 'cli-progress'
import type { RebuildRow } from '../../../src/feeds/rebuild/requests.ts'
import { printNotice } from '../print.ts'

/** Shows the progress of a rebuild on stderr: a bar on a terminal, and a line from time to time elsewhere. */

export type RebuildProgress = { readonly show: (row: RebuildRow) => void; readonly end: () => void }

const LINE_EVERY_MS = 2_000

const secondsOf = (eta: bigint | null): string => (eta === null ? 'unknown' : `${eta} s`)

/** One line: the name, the state, and how far it is. */
export const lineOf = ({ projection, kind, state, done, total, rate, eta_seconds, error }: RebuildRow): string => {
  const events = total === null ? `${done} events` : `${done} of about ${total} events, ${rate ?? 0}/s`
  const left = state === 'running' ? `, ${secondsOf(eta_seconds)} left` : ''
  return `${kind} ${projection}: ${state}, ${events}${left}${error === null ? '' : `. ${error}`}`
}

/** Lines when the state or the reason of a wait changes, and every LINE_EVERY_MS while it runs. */
const linesProgress = (): RebuildProgress => {
  let shown = ''
  let shownAtMs = Number.NEGATIVE_INFINITY
  return {
    show: row => {
      const state = `${row.state} ${row.error ?? ''}`
      const isDue = performance.now() - shownAtMs >= LINE_EVERY_MS && row.state === 'running'
      if (state === shown && !isDue) return
      shown = state
      shownAtMs = performance.now()
      printNotice(lineOf(row))
    },
    end: () => undefined,
  }
}

const barProgress = (): RebuildProgress => {
  const format = '{name} {bar} {percentage} %, {value} of about {total} events, {rate}/s, {left} left {state}'
  const bar = new SingleBar(
    { stream: process.stderr, format, hideCursor: true, gracefulExit: false },
    Presets.shades_classic,
  )
  let isStarted = false
  return {
    show: row => {
      const payload = {
        name: `${row.kind} ${row.projection}`,
        rate: String(row.rate ?? 0n),
        left: secondsOf(row.eta_seconds),
        state: row.state === 'running' ? '' : row.state,
      }
      const total = Number(row.total ?? row.done)
      if (!isStarted) bar.start(total, Number(row.done), payload)
      isStarted = true
      bar.setTotal(total)
      bar.update(Number(row.done), payload)
    },
    end: () => bar.stop(),
  }
}

export const startRebuildProgress = (): RebuildProgress => (process.stderr.isTTY ? barProgress() : linesProgress())
