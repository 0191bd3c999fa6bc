import type { Writable } from 'node:stream'
import { Presets, SingleBar } from 'cli-progress'
import { escaped } from './print.ts'

/**
 * The progress of long commands, on stderr: a bar on a terminal, a plain line every LINE_EVERY_MS in a pipe, and JSON
 * lines with --json. Results stay alone on stdout. `end` comes before anything else is printed, since a bar would be
 * mixed with it.
 */

export type Progress = {
  /** So many units are done altogether. `total` replaces an earlier one, for work whose size becomes known later. */
  readonly update: (done: number, total?: number) => void
  /** `count` more units are done. */
  readonly advance: (count: number) => void
  /** Ends the progress of one work. Idempotent. */
  readonly end: () => void
}

export type Extent = {
  /** How many units there will be; absent where it is not known. */
  readonly total?: number
  /** How many are done already, when the command goes on with an interrupted run. They do not count for the rate. */
  readonly done?: number
}

/** `what` names the work, `unit` that which is counted, in the plural. */
export type StartProgress = (what: string, unit: string, extent?: Extent) => Progress

/** Where progress is shown, and the clock in milliseconds. Tests have others. */
export type ProgressOutput = { readonly stream: Writable & { isTTY?: boolean }; readonly nowMs: () => number }

const LINE_EVERY_MS = 2_000
const BAR_COLUMNS = 24
const REDRAWS_PER_SECOND = 5
const MS_PER_SECOND = 1_000
const SECONDS_PER_MINUTE = 60
const MINUTES_PER_HOUR = 60
/** Before this time a rate says more about the start than about the work. */
const RATE_AFTER_MS = 500

type State = {
  readonly what: string
  readonly unit: string
  readonly first: number
  readonly startedAtMs: number
  done: number
  total: number | undefined
}

const grouped = (count: number): string => Math.round(count).toLocaleString('en-US')

/** `45 s`, `3 min 20 s`, `2 h 5 min`. */
export const durationOf = (seconds: number): string => {
  const whole = Math.ceil(seconds)
  const minutes = Math.floor(whole / SECONDS_PER_MINUTE)
  if (minutes === 0) return `${whole} s`
  if (minutes < MINUTES_PER_HOUR) return `${minutes} min ${whole % SECONDS_PER_MINUTE} s`
  return `${Math.floor(minutes / MINUTES_PER_HOUR)} h ${minutes % MINUTES_PER_HOUR} min`
}

/** Units per second of this run; 0 while that would say more about its start. */
const rateOf = ({ done, first, startedAtMs }: State, nowMs: number): number =>
  nowMs - startedAtMs < RATE_AFTER_MS ? 0 : ((done - first) * MS_PER_SECOND) / (nowMs - startedAtMs)

const etaSecondsOf = ({ done, total }: State, rate: number): number | undefined =>
  rate > 0 && total !== undefined && total > done ? Math.ceil((total - done) / rate) : undefined

/** `payments_v1: 1,200 of 4,000 events (30 %), 400/s, 7 s left`; without a total `payments_v1: 1,200 events, 400/s`. */
const textOf = (state: State, nowMs: number): string => {
  const { what, unit, done, total } = state
  const rate = rateOf(state, nowMs)
  const etaSeconds = etaSecondsOf(state, rate)
  const of = total === undefined ? '' : ` of ${grouped(total)}`
  const percent = total === undefined || total === 0 ? '' : ` (${Math.min(Math.floor((done / total) * 100), 100)} %)`
  const parts = [`${what}: ${grouped(done)}${of} ${unit}${percent}`]
  if (rate > 0) parts.push(`${grouped(rate)}/s`)
  if (etaSeconds !== undefined) parts.push(`${durationOf(etaSeconds)} left`)
  return escaped(parts.join(', '))
}

const jsonOf = (state: State, nowMs: number): string => {
  const { what, unit, done, total } = state
  const rate = rateOf(state, nowMs)
  const eta_seconds = etaSecondsOf(state, rate)
  return escaped(JSON.stringify({ progress: { work: what, unit, done, total, rate: Math.round(rate), eta_seconds } }))
}

type Display = { readonly show: () => void; readonly end: () => void }

const lines = ({ stream, nowMs }: ProgressOutput, text: () => string): Display => {
  let printedAtMs = nowMs()
  let isBegun = false
  const line = (): void => {
    isBegun = true
    printedAtMs = nowMs()
    stream.write(`${text()}\n`)
  }
  return {
    show: () => void (nowMs() - printedAtMs >= LINE_EVERY_MS && line()),
    // A command that ends before its first line is due needs none.
    end: () => void (isBegun && line()),
  }
}

const bar = ({ stream }: ProgressOutput, text: () => string, state: State): Display => {
  const { barCompleteChar, barIncompleteChar } = Presets.shades_classic
  const format = (): string => {
    const { done, total } = state
    if (total === undefined || total === 0) return text()
    const filled = Math.min(BAR_COLUMNS, Math.floor((done / total) * BAR_COLUMNS))
    return `${barCompleteChar.repeat(filled)}${barIncompleteChar.repeat(BAR_COLUMNS - filled)} ${text()}`
  }
  // The cursor stays, because a process that is killed could not show it again.
  const drawn = new SingleBar({ stream, format, hideCursor: false, gracefulExit: false, fps: REDRAWS_PER_SECOND })
  drawn.start(1, 0)
  const end = (): void => drawn.stop()
  process.once('exit', end)
  return {
    // The bar redraws itself at intervals.
    show: () => undefined,
    end: () => {
      process.off('exit', end)
      end()
    },
  }
}

const STDERR: ProgressOutput = { stream: process.stderr, nowMs: () => performance.now() }

/** The form of progress for this command: JSON with --json, a bar where stderr is a terminal, else plain lines. */
export const progressFor =
  ({ json }: { readonly json: boolean }, output = STDERR): StartProgress =>
  (what, unit, { total, done = 0 } = {}) => {
    const state: State = { what, unit, first: done, startedAtMs: output.nowMs(), done, total }
    const text = (): string => (json ? jsonOf : textOf)(state, output.nowMs())
    const display = output.stream.isTTY === true && !json ? bar(output, text, state) : lines(output, text)
    let isEnded = false
    const update: Progress['update'] = (now, wholly = state.total) => {
      if (isEnded) return
      Object.assign(state, { done: now, total: wholly })
      display.show()
    }
    return {
      update,
      advance: count => update(state.done + count),
      end: () => {
        if (!isEnded) display.end()
        isEnded = true
      },
    }
  }
