import type { CloudEvent, Operations } from '../../../scripts/client/src/generated.ts'
import { ApiError, send } from '../api.ts'

/** GET /events as server-sent events, by fetch: an EventSource cannot send a token. */

type FactType = NonNullable<NonNullable<Operations['GET /events']['request']['query']>['type']>

export const FACT_TYPES = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'invoice.voided',
  'payment.succeeded',
  'payment.failed',
  'payment.refunded',
  'export.completed',
] as const satisfies readonly FactType[]

type Message = { readonly id: string; readonly data: string }

/** The message of a block of lines; undefined for a comment. */
const messageOf = (block: string): Message | undefined => {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart())
  }
  const data = fields.get('data')
  return data === undefined ? undefined : { id: fields.get('id') ?? '', data }
}

async function* messagesIn(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Message> {
  let rest = ''
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const message = messageOf(block)
      if (message) yield message
    }
  }
}

const PAUSE_MS = 2_000
const HISTORY_MS = 3_600_000

const pause = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, PAUSE_MS)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

/** Whether a connection that ended with this may be made again: without an answer, or while the service is busy. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500

type Following = {
  readonly signal: AbortSignal
  readonly onState: (connected: boolean) => void
}

/**
 * Calls `receive` with the facts of the last hour and with each new one, also after the connection was lost, until the
 * signal aborts. Throws ApiError for a refusal.
 */
export const followFacts = async (
  filters: { readonly type: string; readonly subject: string },
  receive: (fact: CloudEvent) => void,
  { signal, onState }: Following,
): Promise<void> => {
  const query = { ...filters, from_time: new Date(Date.now() - HISTORY_MS).toISOString() }
  for (let last = ''; !signal.aborted; ) {
    try {
      const headers = { Accept: 'text/event-stream', ...(last === '' ? {} : { 'Last-Event-ID': last }) }
      const { body } = await send('GET /events', { query, headers, signal })
      onState(true)
      if (body)
        for await (const { id, data } of messagesIn(body)) {
          last = id
          receive(JSON.parse(data) as CloudEvent)
        }
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error) || (error instanceof ApiError && error.code === 'token_expired')) throw error
    }
    if (signal.aborted) return
    onState(false)
    await pause(signal)
  }
}
