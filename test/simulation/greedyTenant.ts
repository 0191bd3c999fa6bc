import type { Fault } from './faultActions.ts'
import type { Sent } from './http.ts'

/** A tenant with many callers, who each have several requests open all the time, some of which wait for long. */

export const GREEDY = 'greedy'
const CALLERS = 20
const REQUESTS_OF_CALLER = 15
const LENGTH_MAX_MS = 1_500

type Greed = Pick<Sent, 'operation' | 'id' | 'query' | 'headers' | 'body'>

const REQUESTS: readonly Greed[] = [
  { operation: 'read_order', id: 'ord_01JB3N8Q6Z4T1V7W9XAC2E5GHK' },
  { operation: 'list_payments', query: { limit: '100' } },
  { operation: 'list_orders', headers: { 'if-min-position': '999999999999', prefer: 'wait=1' } },
  { operation: 'create_order', body: { currency: 'USD', lines: [{ sku: 'greed', quantity: 1, unit_amount: 1 }] } },
]

export const greedyTenant: Fault = ({ service, timeline, history, random }) => {
  const lengthMs = Math.round(random.next() * LENGTH_MAX_MS)
  const endsAtMs = timeline.nowMs() + lengthMs
  history.note(`a tenant sends ${CALLERS * REQUESTS_OF_CALLER} requests at once for ${lengthMs} ms`)
  let requests = 0
  const sendAgain = async (subject: string): Promise<void> => {
    while (timeline.nowMs() < endsAtMs && service.instances().length > 0) {
      const instance = random.pick(service.instances())
      const correlationId = `greedy-${(requests += 1)}`
      const sent = { ...random.pick(REQUESTS), caller: { tenant: GREEDY, subject }, correlationId }
      const answer = await Promise.race([instance.send(sent), instance.ended])
      answer?.close()
      history.count(`greedy ${answer?.status ?? 'no answer'}`)
      // Closes the loop in virtual time also when the answer needs none.
      await new Promise<void>(resolve => timeline.after(1, resolve))
    }
  }
  for (let n = 0; n < CALLERS * REQUESTS_OF_CALLER; n += 1) void sendAgain(`caller-${n % CALLERS}`)
  return true
}
