import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { isId } from '../../../streams/ids.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { createRetryingFetch, EffectUnknownError } from '../../client/src/retry.ts'
import { sentenceOf } from '../apiClient.ts'

/** The payments of the ledger over HTTP, as far as a bank statement concerns them. */

const paymentSchema = z.object({
  id: z.string(),
  state: z.enum(['pending', 'succeeded', 'failed', 'partially_refunded', 'refunded']),
  amount: z.int().transform(BigInt),
  currency: z.string(),
  reference: z.string().nullable(),
  settlement: z.enum(['immediate', 'deferred']),
})
export type Payment = z.output<typeof paymentSchema>

/** Whether a bank statement can be about the payment: it waits for money, or has it. */
export const isDeferredAndNotFailed = ({ settlement, state }: Payment): boolean =>
  settlement === 'deferred' && state !== 'failed'

const pageSchema = z.object({
  items: z.array(paymentSchema),
  page: z.looseObject({ next_cursor: z.string().nullable() }),
})
const historySchema = z.object({ items: z.array(z.object({ type: z.string(), correlation_id: z.string() })) })

/**
 * The end of a settlement. `by`: the correlation id under which the payment is settled, which is another one if it was
 * settled before. not_accepted: its invoice has not accepted the payment yet, so that it cannot be settled now.
 */
export type Settlement =
  | { readonly kind: 'settled'; readonly by: string }
  | { readonly kind: 'failed' }
  | { readonly kind: 'not_accepted' }

export type LedgerPayments = {
  /**
   * The payment with this id, or those with this reference: at most one that has not failed, after the failed ones that
   * it was refused to.
   */
  readonly named: (name: string) => Promise<readonly Payment[]>
  /** All pending payments, newest first. */
  readonly pending: () => AsyncGenerator<Payment>
  /** The correlation id of the settlement; undefined before there is one. */
  readonly settledBy: (id: string) => Promise<string | undefined>
  /** Settles a deferred payment under this correlation id. */
  readonly settle: (id: string, correlationId: string) => Promise<Settlement>
}

export type LedgerApi = {
  readonly api: string
  /** The position of the log up to which lists must be complete. */
  readonly head: bigint
  readonly token: () => Promise<string>
  /** Ends requests and the pauses between them. */
  readonly signal: AbortSignal
  readonly sleep?: (durationMs: number, signal: AbortSignal) => Promise<unknown>
}

const PAGE_LIMIT = 100
/** A read model that is further behind is asked for again until the client gives up. */
const WAIT_FOR_HEAD = 'wait=10'
/** A settlement is one of the first events of a payment. */
const HISTORY_LIMIT = 10
const ACCEPTED_WITHIN_TRIES = 30
const ACCEPTED_POLL_MS = 500
/**
 * After this many payments without acceptance the service is taken to be behind, and each other payment is tried once.
 */
const NOT_ACCEPTED_MAX = 8
const [OK, NOT_FOUND, CONFLICT] = [200, 404, 409]

type Answer = { readonly status: number; readonly document: unknown; readonly correlationId: string | null }

const createAsk = ({ api, token, signal }: Omit<LedgerApi, 'head'>) => {
  const send = createRetryingFetch({ token })
  return async (method: 'GET' | 'POST', path: string, headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await send(`${api}${path}`, { method, headers, signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      if (error instanceof EffectUnknownError && error.response !== undefined) return error.response
      throw new StartupError(`The API at ${api} does not answer. See npm run ledger -- doctor.`, error)
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true
    const document: unknown = isJson ? JSON.parse(text) : undefined
    const isExpected = response.ok || response.status === NOT_FOUND || response.status === CONFLICT
    if (!isExpected) throw new StartupError(sentenceOf(response.status, document))
    return { status: response.status, document, correlationId: response.headers.get('x-correlation-id') }
  }
}

type Ask = ReturnType<typeof createAsk>

type List = (filter: Readonly<Record<string, string>>) => AsyncGenerator<Payment>

const createList = (ask: Ask, head: bigint): List =>
  async function* (filter) {
    const headers = { 'if-min-position': head.toString(), prefer: WAIT_FOR_HEAD }
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ limit: String(PAGE_LIMIT), ...filter, ...(cursor === '' ? {} : { cursor }) })
      const { status, document } = await ask('GET', `/payments?${query.toString()}`, headers)
      if (status >= NOT_FOUND) throw new StartupError(sentenceOf(status, document))
      const { items, page } = pageSchema.parse(document)
      yield* items
      cursor = page.next_cursor
    }
  }

const byId = async (ask: Ask, id: string): Promise<Payment | undefined> => {
  const { status, document } = await ask('GET', `/payments/${id}`)
  return status === NOT_FOUND ? undefined : paymentSchema.parse(document)
}

const named = async (ask: Ask, list: List, name: string): Promise<readonly Payment[]> => {
  const payments: Payment[] = []
  const ofId = isId('pay', name) ? await byId(ask, name) : undefined
  if (ofId !== undefined) payments.push(ofId)
  for await (const payment of list({ reference: name })) {
    // Failed payments keep their reference; of several only the newest is reported.
    if (payment.state !== 'failed') return [...payments, payment]
    if (payments.length === 0) payments.push(payment)
  }
  return payments
}

const settledBy = async (ask: Ask, id: string): Promise<string | undefined> => {
  const { status, document } = await ask('GET', `/payments/${id}/history?limit=${HISTORY_LIMIT}`)
  if (status >= NOT_FOUND) throw new StartupError(sentenceOf(status, document))
  return historySchema.parse(document).items.find(({ type }) => type === 'PaymentSucceeded')?.correlation_id
}

/** The wait for invoices that have not accepted a payment yet; `notAccepted` counts the payments that were given up. */
type AcceptanceWait = { readonly sleep: () => Promise<unknown>; notAccepted: number }

const settle = async (ask: Ask, id: string, correlationId: string, wait: AcceptanceWait): Promise<Settlement> => {
  // With a key the client repeats a request without an answer; settling twice has no further effect.
  const headers = { 'x-correlation-id': correlationId, 'idempotency-key': correlationId }
  for (let tries = 1; ; tries++) {
    const answer = await ask('POST', `/payments/${id}:settle`, headers)
    if (answer.correlationId !== correlationId)
      throw new StartupError('A proxy before the API replaces X-Correlation-ID, by which lines are recognized.')
    // A refused request may have come after the settlement of another caller, so that the state decides.
    const state = answer.status === OK ? 'succeeded' : (await byId(ask, id))?.state
    if (state !== 'pending') {
      const by = state === undefined || state === 'failed' ? undefined : await settledBy(ask, id)
      return by === undefined ? { kind: 'failed' } : { kind: 'settled', by }
    }
    if (tries >= ACCEPTED_WITHIN_TRIES || wait.notAccepted >= NOT_ACCEPTED_MAX) break
    await wait.sleep()
  }
  wait.notAccepted += 1
  return { kind: 'not_accepted' }
}

const sleepReally = (durationMs: number, signal: AbortSignal): Promise<unknown> =>
  pause(durationMs, undefined, { signal })

/** Its functions throw a StartupError if the service does not answer, or the token lacks a scope. */
export const createLedgerPayments = (options: LedgerApi): LedgerPayments => {
  const { signal, sleep = sleepReally } = options
  const ask = createAsk(options)
  const list = createList(ask, options.head)
  const wait: AcceptanceWait = { sleep: () => sleep(ACCEPTED_POLL_MS, signal), notAccepted: 0 }
  return {
    named: name => named(ask, list, name),
    pending: () => list({ state: 'pending' }),
    settledBy: id => settledBy(ask, id),
    settle: (id, correlationId) => settle(ask, id, correlationId, wait),
  }
}
