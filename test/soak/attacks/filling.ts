import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Target } from './attack.ts'

/**
 * Fills the log: every caller creates the largest orders that are accepted, at its full rate, and one of them replays a
 * subscription again and again. A service with a small TENANT_BYTES_PER_DAY refuses nearly all of it.
 */

/** A little below the limit of a body. */
const BODY_BYTES = 63 * 1024
/** 6,000 requests a minute, shared by the workers of a caller. */
const WORKERS_PER_CALLER = 4
const REQUEST_EVERY_MS = 10
const REPLAY_EVERY_MS = 100

/** Stores compress texts that repeat themselves. */
const text = (chars: number): string => randomBytes(chars).toString('base64').slice(0, chars)

const METADATA = Object.fromEntries(
  Array.from({ length: 50 }, (_, index) => [`member_${index}`.padEnd(40, '_'), text(500)]),
)
const line = () => ({ sku: text(500), description: text(500), quantity: 1, unit_amount: 1 })
const SHORT = JSON.stringify({ currency: 'USD', metadata: METADATA })
const LINES_COUNT = Math.floor((BODY_BYTES - SHORT.length) / JSON.stringify([line()]).length)
const LINES = Array.from({ length: LINES_COUNT }, line)

type Count = (outcome: string) => void
type Posted = { readonly id?: string; readonly code?: string }

const post = async (url: string, token: string, body: object, signal: AbortSignal): Promise<Posted> => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal })
  return (await answer.json()) as Posted
}

/** Posts until the signal aborts, once in each period at most. */
const repeatedly = async (everyMs: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> => {
  while (!signal.aborted) {
    const paused = sleep(everyMs, undefined, { signal }).catch(() => undefined)
    await work().catch(() => undefined)
    await paused
  }
}

const createOrders = (api: string, token: string, signal: AbortSignal, count: Count): Promise<void[]> => {
  let number = 0
  const create = async (): Promise<void> => {
    const reference = `${token.slice(-8)} ${(number += 1)}`
    const order = { currency: 'USD', customer_reference: reference, lines: LINES, metadata: METADATA }
    const { code } = await post(`${api}/orders`, token, order, signal)
    count(`order ${code ?? 'created'}`)
  }
  const everyMs = REQUEST_EVERY_MS * WORKERS_PER_CALLER
  return Promise.all(Array.from({ length: WORKERS_PER_CALLER }, () => repeatedly(everyMs, signal, create)))
}

let subscription = ''

const subscribe = async ({ api, tokens: [token = ''] }: Target): Promise<void> => {
  const body = { types: ['order.created'], start: 'beginning' }
  subscription = (await post(`${api}/subscriptions`, token, body, AbortSignal.timeout(30_000))).id ?? ''
}

const replay = async (api: string, token: string, signal: AbortSignal, count: Count): Promise<void> => {
  const path = `/subscriptions/${subscription}:replay`
  await repeatedly(REPLAY_EVERY_MS, signal, async () => {
    const { code } = await post(`${api}${path}`, token, { from: 'beginning' }, signal)
    count(`replay ${code ?? 'accepted'}`)
  })
}

export const attack: Attack = {
  name: 'filling the log and the topics',
  prepare: subscribe,
  run: async ({ api, tokens }, signal) => {
    const outcomes: Record<string, number> = {}
    const count: Count = outcome => void (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1)
    const [first = ''] = tokens
    await Promise.all([
      ...tokens.map(token => createOrders(api, token, signal, count)),
      replay(api, first, signal, count),
    ])
    return outcomes
  },
}
