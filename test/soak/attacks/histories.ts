import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack, Target } from './attack.ts'
import { headersOf, outcomeOf } from './attackRequests.ts'

/** Reads of the history, and of an earlier state, of an order with as many large changes as an order takes. */

const CHANGES = 1_000
const METADATA_KEYS = 50
const VALUE_CHARACTERS = 480
const CONNECTIONS = 40
/** Each connection asks so often at most, within the limits of its caller. */
const PAUSE_MS = 20

const metadataOf = (n: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: METADATA_KEYS }, (_, key) => [`key_${key}`, `${n}`.padEnd(VALUE_CHARACTERS, 'x')]),
  )

let orderId = ''

const prepare = async ({ api, tokens }: Target): Promise<void> => {
  const headers = { ...headersOf(tokens[0]), 'content-type': 'application/json' }
  const lines = [{ sku: 'x', description: 'x', quantity: 1, unit_amount: 100 }]
  const body = JSON.stringify({ customer_reference: null, currency: 'USD', lines })
  let answer = await fetch(`${api}/orders`, { method: 'POST', headers, body })
  orderId = ((await answer.json()) as { id: string }).id
  for (let n = 1; n < CHANGES && answer.ok; n++) {
    const patch = {
      ...headers,
      'content-type': 'application/merge-patch+json',
      'if-match': answer.headers.get('etag') ?? '',
    }
    answer = await fetch(`${api}/orders/${orderId}`, {
      method: 'PATCH',
      headers: patch,
      body: JSON.stringify({ metadata: metadataOf(n) }),
    })
    await answer.arrayBuffer()
  }
  if (!answer.ok) throw new Error(`A change was answered with ${answer.status}.`)
}

const run = async ({ api, tokens }: Target, signal: AbortSignal): Promise<Readonly<Record<string, number>>> => {
  const outcomes: Record<string, number> = {}
  const ask = async (index: number): Promise<void> => {
    const asOf = `${api}/orders/${orderId}?as_of=${new Date().toISOString()}`
    const url = index % 2 === 0 ? `${api}/orders/${orderId}/history?limit=1` : asOf
    while (!signal.aborted) {
      const outcome = await outcomeOf(url, tokens[index % tokens.length], signal)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => ask(index)))
  return outcomes
}

export const attack: Attack = { name: 'histories', prepare, run }
