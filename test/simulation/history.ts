import { createHash } from 'node:crypto'
import type { Answer, Sent } from './http.ts'

/** The record of a run: all requests with their answers, and all events of the simulation, as lines of text. */

/** One attempt at a request, as seen by its client. `answer` is absent if none arrived. */
export type Attempt = {
  readonly action: number
  readonly instance: string
  readonly sent: Sent
  readonly beganMs: number
  endedMs: number
  answer?: Answer
}

/** The history of a run. Its lines have virtual times and are the same for the same seed. */
export type History = {
  readonly attempts: readonly Attempt[]
  readonly begin: (attempt: Omit<Attempt, 'endedMs'>) => Attempt
  readonly end: (attempt: Attempt, answer: Answer | undefined) => void
  readonly note: (text: string) => void
  readonly lines: readonly string[]
  /** The number of times that each kind of answer or fault has happened. */
  readonly counts: ReadonlyMap<string, number>
  readonly count: (name: string, times?: number) => void
}

const SECOND_MS = 1_000
const DECIMALS = 3

const etagIn = ({ headers }: Answer): string => (headers['ETag'] === undefined ? '' : ` etag ${headers['ETag']}`)

const answerText = (answer: Answer | undefined): string => {
  if (answer === undefined) return 'no answer'
  const id = answer.body?.['id']
  const state = answer.body?.['state']
  const about = answer.code ?? [id, state].filter(word => typeof word === 'string').join(' ')
  const replayed = answer.headers['Idempotent-Replayed'] === undefined ? '' : ' replayed'
  return `${answer.status} ${about}${etagIn(answer)}${replayed}`
}

const sentText = ({ operation, caller, id, query, headers, body }: Sent): string =>
  [
    `${caller.tenant}/${caller.subject}`,
    operation,
    id ?? '',
    Object.entries({ ...query, ...headers })
      .filter(([name]) => name !== 'cursor')
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    body === undefined ? '' : JSON.stringify(body),
  ]
    .filter(part => part !== '')
    .join(' ')

export const createHistory = (nowMs: () => number): History => {
  const attempts: Attempt[] = []
  const lines: string[] = []
  const counts = new Map<string, number>()
  const stamp = (): string => (nowMs() / SECOND_MS).toFixed(DECIMALS).padStart(9)
  const note = (text: string): void => void lines.push(`${stamp()}  ${text}`)
  const count = (name: string, times = 1): void => void counts.set(name, (counts.get(name) ?? 0) + times)
  return {
    attempts,
    lines,
    counts,
    note,
    count,
    begin: begun => {
      const attempt = { ...begun, endedMs: Number.POSITIVE_INFINITY }
      attempts.push(attempt)
      note(`#${begun.action} → ${begun.instance}: ${sentText(begun.sent)}`)
      return attempt
    },
    end: (attempt, answer) => {
      attempt.endedMs = nowMs()
      if (answer) attempt.answer = answer
      note(`#${attempt.action} ← ${attempt.instance}: ${attempt.sent.operation} ${answerText(answer)}`)
      count(`${attempt.sent.operation} ${answer?.status ?? 'no answer'}`)
    },
  }
}

/** A history for readers, whose many requests are left out: it records only answers with status 500. */
export const onlyInternalErrors = (history: History): History => ({
  ...history,
  begin: attempt => ({ ...attempt, endedMs: 0 }),
  end: (attempt, answer) => {
    if (answer?.status === 500) history.end(history.begin(attempt), answer)
  },
})

/** The SHA-256 of a history, which is the same on every machine for the same seed and the same sources. */
export const hashOf = (lines: readonly string[]): string => createHash('sha256').update(lines.join('\n')).digest('hex')
