import { setTimeout as sleep } from 'node:timers/promises'
import { anOrder } from '../../support/client.ts'
import type { Attack, Target } from './attack.ts'
import { headersOf, outcomeOf } from './attackRequests.ts'

/** Manifests of as many facts as one request counts, by every caller. */

const FACTS = 20_000
const AT_ONCE = 32
const PAUSE_MS = 20

const prepare = async ({ api, tokens }: Target): Promise<void> => {
  let left = FACTS
  const create = async (_: unknown, index: number): Promise<void> => {
    const headers = { ...headersOf(tokens[index % tokens.length]), 'content-type': 'application/json' }
    while (left-- > 0) {
      const answer = await fetch(`${api}/orders`, { method: 'POST', headers, body: JSON.stringify(anOrder()) })
      await answer.arrayBuffer()
      if (!answer.ok) throw new Error(`An order was answered with ${answer.status}.`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, create))
}

const run = async ({ api, tokens }: Target, signal: AbortSignal): Promise<Record<string, number>> => {
  const outcomes: Record<string, number> = {}
  const ask = async (token: string): Promise<void> => {
    while (!signal.aborted) {
      const url = `${api}/events/manifest?topic=ledger.order.v1`
      const outcome = await outcomeOf(url, token, signal)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(tokens.map(ask))
  return outcomes
}

export const attack: Attack = { name: 'manifests', prepare, run }
