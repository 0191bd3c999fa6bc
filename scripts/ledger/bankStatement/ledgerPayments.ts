import { setTimeout as pause } from 'node:timers/promises'
import { isId } from '../../../streams/ids.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import type * as client from '../../client/src/index.ts'
import { createLedgerClient, EffectUnknownError, type LedgerClient, LedgerError } from '../../client/src/index.ts'
import { PAGE_LIMIT } from '../apiClient.ts'

export type Payment = Pick<client.Payment, 'id' | 'state' | 'currency' | 'reference' | 'settlement'> & {
  readonly amount: bigint
}

/** Whether a bank statement can be about the payment: it waits for money, or has it. */
export const isDeferredAndNotFailed = ({ settlement, state }: Payment): boolean =>
  settlement === 'deferred' && state !== 'failed'

/**
 * The end of a settlement. `by`: the correlation id under which the payment is settled, which is another one if it was
 * settled before. not_accepted: its invoice has not accepted the payment yet, so that it cannot be settled now.
 */
export type Settlement =
  | { readonly kind: 'settled'; readonly by: string }
  | { readonly kind: 'failed' }
  | { readonly kind: 'not_accepted' }

export type LedgerPayments = {
  /** With this id or reference: at most one that has not failed, after failed ones that were refused the reference. */
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

/** A read model that is further behind is asked for again until the client gives up. */
const WAIT_FOR_HEAD = 'wait=10'
/** A settlement is one of the first events of a payment. */
const HISTORY_LIMIT = 10
const ACCEPTED_WITHIN_TRIES = 30
const ACCEPTED_POLL_MS = 500
/** Then the service is taken to be behind, and each other payment is tried once. */
const NOT_ACCEPTED_MAX = 8
const [NOT_FOUND, CONFLICT] = [404, 409]

const paymentOf = ({ amount, ...payment }: client.Payment): Payment => ({ ...payment, amount: BigInt(amount) })

type List = (filter: { readonly reference: string } | { readonly state: 'pending' }) => AsyncGenerator<Payment>

const createList = (ledger: LedgerClient, head: bigint): List =>
  async function* (filter) {
    const complete = { ifMinPosition: head.toString(), prefer: WAIT_FOR_HEAD }
    const query = { limit: PAGE_LIMIT, ...filter }
    for await (const payment of ledger.list('GET /payments', { query, ...complete })) yield paymentOf(payment)
  }

const isAnswered = (error: unknown, status: number): error is LedgerError =>
  error instanceof LedgerError && error.status === status

const byId = async ({ request }: LedgerClient, id: string): Promise<Payment | undefined> => {
  try {
    return paymentOf((await request('GET /payments/{id}', { path: { id } })).data)
  } catch (error) {
    if (isAnswered(error, NOT_FOUND)) return undefined
    throw error
  }
}

const named = async (ledger: LedgerClient, list: List, name: string): Promise<readonly Payment[]> => {
  const payments: Payment[] = []
  const ofId = isId('pay', name) ? await byId(ledger, name) : undefined
  if (ofId !== undefined) payments.push(ofId)
  for await (const payment of list({ reference: name })) {
    // Failed payments keep their reference; of several only the newest is reported.
    if (payment.state !== 'failed') return [...payments, payment]
    if (payments.length === 0) payments.push(payment)
  }
  return payments
}

const settledBy = async ({ request }: LedgerClient, id: string): Promise<string | undefined> => {
  const { data } = await request('GET /payments/{id}/history', { path: { id }, query: { limit: HISTORY_LIMIT } })
  return data.items.find(({ type }) => type === 'PaymentSucceeded')?.correlation_id
}

/** Resolves to false when the settlement was refused, or may have been made: the state of the payment tells. */
const sendSettlement = async ({ request }: LedgerClient, id: string, correlationId: string): Promise<boolean> => {
  const requireOwnId = (headers: Headers): void => {
    if (headers.get('x-correlation-id') !== correlationId)
      throw new StartupError('A proxy before the API replaces X-Correlation-ID, by which lines are recognized.')
  }
  try {
    const { headers } = await request('POST /payments/{id}:settle', { path: { id }, xCorrelationId: correlationId })
    requireOwnId(headers)
    return true
  } catch (error) {
    if (error instanceof EffectUnknownError) return false
    if (!isAnswered(error, NOT_FOUND) && !isAnswered(error, CONFLICT)) throw error
    requireOwnId(error.headers)
    return false
  }
}

/** The wait for invoices that have not accepted a payment yet; `notAccepted` counts the payments that were given up. */
type AcceptanceWait = { readonly sleep: () => Promise<unknown>; notAccepted: number }

const settle = async (
  ledger: LedgerClient,
  { id, correlationId }: { readonly id: string; readonly correlationId: string },
  wait: AcceptanceWait,
): Promise<Settlement> => {
  for (let tries = 1; ; tries++) {
    // A refused request may have come after the settlement of another caller.
    const state = (await sendSettlement(ledger, id, correlationId)) ? 'succeeded' : (await byId(ledger, id))?.state
    if (state !== 'pending') {
      const by = state === undefined || state === 'failed' ? undefined : await settledBy(ledger, id)
      return by === undefined ? { kind: 'failed' } : { kind: 'settled', by }
    }
    if (tries >= ACCEPTED_WITHIN_TRIES || wait.notAccepted >= NOT_ACCEPTED_MAX) break
    await wait.sleep()
  }
  wait.notAccepted += 1
  return { kind: 'not_accepted' }
}

/** Its functions reject with the errors of the client, such as for a token that lacks a scope. */
export const createLedgerPayments = (options: LedgerApi): LedgerPayments => {
  const { api, head, token, signal } = options
  const sleep = options.sleep ?? ((durationMs: number) => pause(durationMs, undefined, { signal }))
  const ledger = createLedgerClient({ baseUrl: api, token, signal })
  const list = createList(ledger, head)
  const wait: AcceptanceWait = { sleep: () => sleep(ACCEPTED_POLL_MS, signal), notAccepted: 0 }
  return {
    named: name => named(ledger, list, name),
    pending: () => list({ state: 'pending' }),
    settledBy: id => settledBy(ledger, id),
    settle: (id, correlationId) => settle(ledger, { id, correlationId }, wait),
  }
}
