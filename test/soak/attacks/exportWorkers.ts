import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Target } from './attack.ts'
import { endOf, requestExport } from './attackRequests.ts'
import { insertOrders } from './attackRows.ts'

/** Exports of 500,000 orders, as many at once as the tenant and its callers may have. */

const ORDERS = 500_000
const REFUSED_MS = 200

const run = async ({ api, tokens }: Target, signal: AbortSignal): Promise<Record<string, number>> => {
  const outcomes: Record<string, number> = {}
  const count = (outcome: string): void => void (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1)
  const exportAgain = async (token: string): Promise<void> => {
    while (!signal.aborted) {
      const { status, operation } = await requestExport(api, token)
      count(String(status))
      if (status === 202) count((await endOf(api, token, operation, signal)).state)
      else await sleep(REFUSED_MS)
    }
  }
  await Promise.all(tokens.map(exportAgain))
  return outcomes
}

export const attack: Attack = { name: 'exports', prepare: target => insertOrders(target, ORDERS), run }
