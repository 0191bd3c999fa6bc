import type { Attack, Target } from './attack.ts'
import { endOf, headersOf, requestExport } from './attackRequests.ts'
import { insertOrders } from './attackRows.ts'

/** Downloads of one large file on 400 connections, as many for each caller as it may have at once. */

const ORDERS = 200_000
const DOWNLOADS_PER_CALLER = 4

let file = ''

const prepare = async (target: Target): Promise<void> => {
  await insertOrders(target, ORDERS)
  const { api, tokens } = target
  const { operation } = await requestExport(api, tokens[0])
  const { state, result } = await endOf(api, tokens[0], operation)
  if (!result) throw new Error(`The export is ${state}.`)
  file = new URL(result.href, api).href
}

const run = async ({ tokens }: Target, signal: AbortSignal): Promise<Record<string, number>> => {
  const outcomes: Record<string, number> = { bytes: 0 }
  const count = (outcome: string, by = 1): void => void (outcomes[outcome] = (outcomes[outcome] ?? 0) + by)
  const download = async (token: string): Promise<void> => {
    while (!signal.aborted)
      try {
        const answer = await fetch(file, { headers: headersOf(token), signal })
        count(String(answer.status))
        count('bytes', (await answer.arrayBuffer()).byteLength)
      } catch {
        count('failed')
      }
  }
  await Promise.all(tokens.flatMap(token => Array.from({ length: DOWNLOADS_PER_CALLER }, () => download(token))))
  return outcomes
}

export const attack: Attack = { name: 'downloads', prepare, run }
