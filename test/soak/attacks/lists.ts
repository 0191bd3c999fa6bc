import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Target } from './attack.ts'
import { insertOrders } from './attackRows.ts'

/** Lists with filters that match nothing, over 500,000 orders of the attacking tenant. */

const ORDERS = 500_000
/** Few connections first, and many in the second half. */
const CONNECTIONS = [60, 400]
const PHASE_MS = 10_000
/** Nine tenths of the rate of a caller: 6,000 a minute. */
const REQUESTS_PER_SECOND_OF_CALLER = 90
const PATHS = [
  '/orders?limit=1&currency=JPY',
  '/orders?limit=1&currency=JPY&state=open',
  '/audit-records?limit=1&subject=nobody',
  '/audit-records?limit=1&decision=denied&operation=none',
  '/audit-records?limit=1&resource=none',
]

const prepare = (target: Target): Promise<void> => insertOrders(target, ORDERS)

const run = async ({ api, tokens }: Target, signal: AbortSignal): Promise<Record<string, number>> => {
  const outcomes: Record<string, number> = {}
  const count = (outcome: string): void => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  }
  const request = async (n: number): Promise<void> => {
    const headers = { authorization: `Bearer ${tokens[n % tokens.length]}` }
    try {
      const response = await fetch(`${api}${PATHS[n % PATHS.length]}`, { headers, signal })
      await response.arrayBuffer()
      count(String(response.status))
    } catch {
      if (!signal.aborted) count('failed')
    }
  }
  for (let phase = 0; !signal.aborted; phase++) {
    const connections = CONNECTIONS[phase % CONNECTIONS.length] ?? 1
    const pauseMs = (1_000 * connections) / (REQUESTS_PER_SECOND_OF_CALLER * tokens.length)
    const untilMs = performance.now() + PHASE_MS
    const loop = async (connection: number): Promise<void> => {
      while (!signal.aborted && performance.now() < untilMs) {
        await Promise.all([request(connection), sleep(pauseMs, undefined, { signal }).catch(() => undefined)])
      }
    }
    await Promise.all(Array.from({ length: connections }, (_, connection) => loop(connection)))
  }
  return outcomes
}

export const attack: Attack = { name: 'lists with filters that match nothing', prepare, run }
