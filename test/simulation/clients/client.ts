import type { History } from '../history.ts'
import { type Answer, type Sent, send } from '../http.ts'
import type { Random } from '../random.ts'
import type { Service } from '../service.ts'
import type { Timeline } from '../timeline.ts'

/** A client program outside the service: it never crashes, and keeps to the retry rules that the contract publishes. */
export type Client = {
  readonly action: number
  readonly random: Random
  /** One attempt. Undefined where no answer came: the process ended, or the client gave up waiting. */
  readonly attempt: (request: Request) => Promise<Answer | undefined>
  /** Attempts until the answer is definitive, or for as long as the client has patience. */
  readonly insist: (request: Request) => Promise<Answer | undefined>
  readonly sleep: (timeMs: number) => Promise<void>
  /** Resolves when the instance that answered last has ended. */
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

const GIVE_UP_MS = 12_000
const ATTEMPTS_MAX = 10
const BACKOFF_MS = 300
const BACKOFF_MAX_MS = 3_000

/** Operations that a client may repeat though it does not know what became of the first attempt. */
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
      send(instance, sent),
      instance.ended.then(() => undefined),
      sleep(GIVE_UP_MS).then(() => undefined),
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

  return { action, random, attempt, insist, sleep, disconnected: () => connected }
}

type Retry = { readonly retryable?: boolean; readonly strategy?: string }

const mayRepeat = (request: Request, answer: Answer | undefined): boolean => {
  if (answer === undefined) return isRepeatable(request)
  if (answer.status === 202 && request.operation === 'create_payment') return request.headers?.['prefer'] === undefined
  if (answer.code === undefined) return false
  const { retryable = false, strategy } = (answer.body?.['retry'] ?? {}) as Retry
  if (!retryable) return false
  return strategy === 'same_request' || isRepeatable(request)
}
