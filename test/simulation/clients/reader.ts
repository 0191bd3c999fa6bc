import type { Answer, Caller } from '../http.ts'
import type { Client } from './client.ts'

/** Readers of GET /events, which begin at the first fact and read pages or a stream. */

export type ReceivedFact = {
  readonly id: string
  readonly key: string
  readonly sequence: string
  readonly tenant: string
}
export type FactReader = {
  readonly name: string
  readonly caller: Caller
  /** All received facts, in the order of their arrival. */
  readonly seen: readonly ReceivedFact[]
  /** Whether the reader must receive each fact only once. A stream may repeat facts after it was interrupted. */
  readonly isOnce: boolean
}
export type ReaderDependencies = { readonly client: Client; readonly caller: Caller; readonly isOver: () => boolean }

const PAGE_PAUSE_MS = 400
/** The pause doubles up to this limit while there are no new facts. */
const PAGE_PAUSE_MAX_MS = 1_600
const RECONNECT_MS = 200
const LIMITS = ['1', '3', '25', '100']

type Fact = { readonly id: string; readonly partitionkey: string; readonly sequence: string; readonly tenantid: string }
type Page = {
  readonly items: readonly Fact[]
  readonly page: { readonly next_cursor: string; readonly has_more: boolean }
}

const receivedFactOf = ({ id, partitionkey: key, sequence, tenantid: tenant }: Fact): ReceivedFact => ({
  id,
  key,
  sequence,
  tenant,
})

/** Reads the next page. Resolves with whether there are more pages, or with undefined if the attempt failed. */
type ReadPage = () => Promise<boolean | undefined>

const createPageReader = ({ client, caller }: ReaderDependencies, seen: ReceivedFact[]): ReadPage => {
  let cursor: string | undefined
  return async () => {
    const query = { limit: client.random.pick(LIMITS), ...(cursor === undefined ? {} : { cursor }) }
    const answer = await client.attempt({ operation: 'list_events', caller, query })
    if (answer?.status !== 200) return undefined
    const { items, page } = answer.body as never as Page
    seen.push(...items.map(receivedFactOf))
    cursor = page.next_cursor
    return page.has_more
  }
}

export const followPages = (dependencies: ReaderDependencies): FactReader => {
  const { client, caller, isOver } = dependencies
  const seen: ReceivedFact[] = []
  const readPage = createPageReader(dependencies, seen)
  const follow = async (): Promise<void> => {
    for (let pauseMs = PAGE_PAUSE_MS; !isOver(); ) {
      const before = seen.length
      if (await readPage()) continue
      pauseMs = seen.length > before ? PAGE_PAUSE_MS : Math.min(PAGE_PAUSE_MAX_MS, pauseMs * 2)
      await client.sleep(pauseMs * (0.5 + client.random.next()))
    }
  }
  void follow()
  return { name: `GET /events of ${caller.tenant}`, caller, seen, isOnce: true }
}

/** A reader that ends at the last page. */
export const readAllPages = (
  dependencies: ReaderDependencies,
): { readonly reader: FactReader; readonly isAtEnd: () => boolean } => {
  const { client, caller } = dependencies
  const seen: ReceivedFact[] = []
  const readPage = createPageReader(dependencies, seen)
  let isAtEnd = false
  const readToEnd = async (): Promise<void> => {
    for (let more: boolean | undefined = true; more !== false; more = await readPage())
      if (more === undefined) await client.sleep(PAGE_PAUSE_MS)
    isAtEnd = true
  }
  void readToEnd()
  const name = `GET /events of ${caller.tenant}, from the beginning`
  return { reader: { name, caller, seen, isOnce: true }, isAtEnd: () => isAtEnd }
}

const ID = /^id: (.*)$/m
const DATA = /^data: (.*)$/m

/** Reads Server-Sent Events. A stream that was interrupted is resumed after the last received event. */
export const followStream = ({ client, caller, isOver }: ReaderDependencies): FactReader => {
  const seen: ReceivedFact[] = []
  let lastEventId: string | undefined
  const receive = (chunk: string | Uint8Array): Promise<void> => {
    for (const text of chunk.toString().split('\n\n')) {
      const data = DATA.exec(text)?.[1]
      if (data !== undefined) seen.push(receivedFactOf(JSON.parse(data)))
      lastEventId = ID.exec(text)?.[1] ?? lastEventId
    }
    return Promise.resolve()
  }
  const read = async (answer: Answer): Promise<void> => {
    const stopped = new AbortController()
    // A stream that fails just ends, and the client connects again.
    const ended = answer.stream?.(receive, stopped.signal).catch(() => undefined)
    await Promise.race([ended, client.disconnected()])
    stopped.abort()
    answer.close()
  }
  const follow = async (): Promise<void> => {
    while (!isOver()) {
      const resumed = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
      const headers = { accept: 'text/event-stream', ...resumed }
      const answer = await client.attempt({ operation: 'list_events', caller, headers })
      if (answer?.status === 200) await read(answer)
      await client.sleep(RECONNECT_MS * (0.5 + client.random.next()))
    }
  }
  void follow()
  return { name: `the event stream of ${caller.tenant}`, caller, seen, isOnce: false }
}
