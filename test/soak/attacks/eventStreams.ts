import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { anOrder } from '../../support/client.ts'
import type { Attack, Target } from './attack.ts'

/**
 * All callers of one tenant hold as many event streams as they may, from the beginning, while the tenant's own orders
 * bring facts: each fact is sent to every stream.
 */

const STREAMS_PER_CALLER = 20
const REOPEN_MS = 1_000
/** 50 orders a second, a half of what one caller may send. */
const ORDER_EVERY_MS = 20

type Counts = Record<string, number>
type Attacker = { readonly api: string; readonly agent: Agent; readonly signal: AbortSignal; readonly counts: Counts }

const count = (counts: Counts, outcome: string): void => void (counts[outcome] = (counts[outcome] ?? 0) + 1)

/** Resolves when the response has ended. */
const ask = ({ api, agent, signal, counts }: Attacker, token: string, order?: object): Promise<void> =>
  new Promise(resolve => {
    const body = order && JSON.stringify(order)
    const json = body ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } : {}
    const headers = {
      authorization: `Bearer ${token}`,
      accept: body ? 'application/json' : 'text/event-stream',
      ...json,
    }
    const receive = (answer: IncomingMessage): void => {
      count(counts, `${body ? 'orders' : 'streams'} ${answer.statusCode}`)
      answer.on('data', (chunk: Buffer) => (counts['bytes'] = (counts['bytes'] ?? 0) + chunk.length))
      answer.on('error', () => undefined).on('close', resolve)
    }
    const method = body ? 'POST' : 'GET'
    const outgoing = request(`${api}/${body ? 'orders' : 'events'}`, { agent, method, headers, signal }, receive)
    outgoing.on('error', () => resolve())
    outgoing.end(body)
  })

const holdStream = async (attacker: Attacker, token: string): Promise<void> => {
  while (!attacker.signal.aborted) {
    await ask(attacker, token)
    await sleep(REOPEN_MS)
  }
}

const sendOrders = async (attacker: Attacker, token: string): Promise<void> => {
  while (!attacker.signal.aborted) {
    void ask(attacker, token, anOrder())
    await sleep(ORDER_EVERY_MS)
  }
}

export const attack: Attack = {
  name: 'event streams of all callers of a tenant',
  run: async ({ api, tokens }: Target, signal: AbortSignal) => {
    const counts: Counts = {}
    const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
    const attacker = { api, agent, signal, counts }
    const streams = tokens.flatMap(token =>
      Array.from({ length: STREAMS_PER_CALLER }, () => holdStream(attacker, token)),
    )
    await Promise.all([...streams, ...tokens.slice(0, 1).map(token => sendOrders(attacker, token))])
    agent.destroy()
    return counts
  },
}
