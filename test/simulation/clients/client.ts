import type { History } from '../history.ts'
import type { Answer, Sent } from '../http.ts'
import type { Random } from '../random.ts'
import type { Service } from '../service.ts'
import type { Timeline } from '../timeline.ts'

/** A client program outside the service. It never crashes, and it follows the retry rules in the contract. */
export type Client = {
  readonly action: number
  readonly random: Random
  /** Sends the request once. Undefined without an answer: the process ended, none was running, or the client timed out. */
  readonly attempt: (request: Request) => Promise<Answer | undefined>
  /** Sends the request until the answer is definitive, with a limit for the number of attempts. */
  readonly sendWithRetries: (request: Request) => Promise<Answer | undefined>
  readonly sleep: (timeMs: number) => Promise<void>
  /** Resolves when the instance that got the last request has ended. */
  readonly disconnected: () => Promise<void>
}

export type Request = Omit<Sent, 'correlationId'>

export type ClientDependencies = {
  readonly service: Service
  readonly timeline: Timeline
  readonly history: History
  readonly random: Random
  readonly action: number
}

const ANSWER_TIMEOUT_MS = 12_000
const ATTEMPTS_MAX = 10
const BACKOFF_MS = 300
const BACKOFF_MAX_MS = 3_000

/** Whether a client may repeat the request without knowing the effect of the first attempt. */
const isRepeatable = ({ operation, headers }: Request): boolean =>
  headers?.['idempotency-key'] !== undefined || /^(read|list)_/.test(operation)

export const createClient = ({ service, timeline, history, random, action }: ClientDependencies): Client => {
  let attempts = 0
  let connected: Promise<void> = Promise.resolve()
  const sleep = (timeMs: number): Promise<void> => new Promise(resolve => void timeline.after(timeMs, resolve))

  const attempt = async (request: Request): Promise<Answer | undefined> => {
    const instances = service.instances()
    if (instances.length === 0) {
      await sleep(BACKOFF_MS)
      return undefined
    }
    const instance = random.pick(instances)
    connected = instance.ended
    const correlationId = `action-${String(action).padStart(4, '0')}-${(attempts += 1)}`
    const sent = { ...request, correlationId }
    const begun = history.begin({ action, instance: instance.machine.name, sent, beganMs: timeline.nowMs() })
    const answer = await Promise.race([
      instance.send(sent),
      instance.ended.then(() => undefined),
      sleep(ANSWER_TIMEOUT_MS).then(() => undefined),
    ])
    history.end(begun, answer)
    return answer
  }

  const insist = async (request: Request): Promise<Answer | undefined> => {
    let last: Answer | undefined
    for (let tries = 1; tries <= ATTEMPTS_MAX; tries += 1) {
      last = await attempt(request)
      if (!mayRepeat(request, last)) return last
      await sleep(Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** tries) * (0.5 + random.next()))
    }
    return last
  }

  return { action, random, attempt, sendWithRetries: insist, sleep, disconnected: () => connected }
}

type Retry = { readonly retryable?: boolean; readonly strategy?: string }

/** A 202 for a payment is repeated until its outcome is known, unless the client preferred an early answer. */
const mayRepeat = (request: Request, answer: Answer | undefined): boolean => {
  if (answer === undefined) return isRepeatable(request)
  if (answer.status === 202 && request.operation === 'create_payment') return request.headers?.['prefer'] === undefined
  if (answer.code === undefined) return false
  const { retryable = false, strategy } = (answer.body?.['retry'] ?? {}) as Retry
  if (!retryable) return false
  return strategy === 'same_request' || isRepeatable(request)
}
