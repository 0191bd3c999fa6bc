/**
 * Whether a process answers. The primary asks it once a second. Silence is counted in questions and not in time: a
 * primary that was suspended with its children, or waited for a processor itself, has asked nothing meanwhile.
 *
 *   answering ── `silent` questions without an answer ──▶ silent ── `hung` questions ──▶ hung
 *       ▲                                                    │
 *       └──────────────────── an answer ─────────────────────┘
 */

const ASK_EVERY_MS = 1_000
/** A collection of garbage or a long turn of the event loop takes a second or two. */
const UNANSWERED_MAX = { silent: 5, hung: 30 }
/** Before its first answer a process loads its modules, perhaps from a slow disk. */
const UNANSWERED_AT_START_MAX = { silent: 30, hung: 120 }

export type LivenessOptions = {
  /** Resolves when the process has answered. */
  readonly ask: () => Promise<unknown>
  readonly onSilent: () => void
  readonly onAnswer: () => void
  readonly onHung: () => void
  readonly askEveryMs?: number
}

export type Liveness = { readonly isAnswering: () => boolean; readonly stop: () => void }

export const watchLiveness = ({
  ask,
  onSilent,
  onAnswer,
  onHung,
  askEveryMs = ASK_EVERY_MS,
}: LivenessOptions): Liveness => {
  let unanswered = 0
  let hasAnswered = false
  let isAsked = false
  const max = () => (hasAnswered ? UNANSWERED_MAX : UNANSWERED_AT_START_MAX)
  const isAnswering = (): boolean => unanswered < max().silent

  const answered = (): void => {
    const wasSilent = !isAnswering()
    isAsked = false
    hasAnswered = true
    unanswered = 0
    if (wasSilent) onAnswer()
  }

  const timer = setInterval(() => {
    unanswered += 1
    if (unanswered === max().silent) onSilent()
    if (unanswered === max().hung) onHung()
    if (isAsked) return
    isAsked = true
    // A rejection means that the process has ended.
    ask().then(answered, () => undefined)
  }, askEveryMs)
  return { isAnswering, stop: () => clearInterval(timer) }
}
