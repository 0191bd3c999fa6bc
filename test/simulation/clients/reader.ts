import type { Answer, Caller } from '../http.ts'
import type { Client } from './client.ts'

/** An analyst who follows GET /events from the beginning for as long as the run lasts, by pages or by a stream. */
export type Seen = { readonly id: string; readonly key: string; readonly sequence: string; readonly tenant: string }
export type FactReader = {
  readonly name: string
  readonly caller: Caller
  readonly seen: readonly Seen[]
  /** Whether a fact that has been seen never comes again. */
  readonly isOnce: boolean
}
export type Following = { readonly client: Client; readonly caller: Caller; readonly isOver: () => boolean }

const PAGE_PAUSE_MS = 400
/** A reader who finds nothing new comes again later, and later still. */
const PAGE_PAUSE_MAX_MS = 1_600
const RECONNECT_MS = 200
const LIMITS = ['1', '3', '25', '100']

type Fact = { readonly id: string; readonly partitionkey: string; readonly sequence: string; readonly tenantid: string }
type Page = {
  readonly items: readonly Fact[]
  readonly page: { readonly next_cursor: string; readonly has_more: boolean }
}

const seenOf = ({ id, partitionkey: key, sequence, tenantid: tenant }: Fact): Seen => ({ id, key, sequence, tenant })

/** Tells whether there is more behind. */
type Turn = () => Promise<boolean | undefined>

/** One page behind the other; `undefined` stands for an attempt that brought none. */
const pagesOf = ({ client, caller }: Following, seen: Seen[]): Turn => {
  let cursor: string | undefined
  return async () => {
    const query = { limit: client.random.pick(LIMITS), ...(cursor === undefined ? {} : { cursor }) }
    const answer = await client.attempt({ operation: 'list_events', caller, query })
    if (answer?.status !== 200) return undefined
    const { items, page } = answer.body as never as Page
    seen.push(...items.map(seenOf))
    cursor = page.next_cursor
    return page.has_more
  }
}

export const followPages = (following: Following): FactReader => {
  const { client, caller, isOver } = following
  const seen: Seen[] = []
  const turn = pagesOf(following, seen)
  const follow = async (): Promise<void> => {
    for (let pauseMs = PAGE_PAUSE_MS; !isOver(); ) {
      const before = seen.length
      if (await turn()) continue
      pauseMs = seen.length > before ? PAGE_PAUSE_MS : Math.min(PAGE_PAUSE_MAX_MS, pauseMs * 2)
      await client.sleep(pauseMs * (0.5 + client.random.next()))
    }
  }
  void follow()
  return { name: `GET /events of ${caller.tenant}`, caller, seen, isOnce: true }
}

/** A reader who begins now, and ends where there is no more. */
export const walkPages = (following: Following): { readonly reader: FactReader; readonly isAtEnd: () => boolean } => {
  const { client, caller } = following
  const seen: Seen[] = []
  const turn = pagesOf(following, seen)
  let atEnd = false
  const walk = async (): Promise<void> => {
    for (let more: boolean | undefined = true; more !== false; more = await turn())
      if (more === undefined) await client.sleep(PAGE_PAUSE_MS)
    atEnd = true
  }
  void walk()
  const name = `GET /events of ${caller.tenant}, from the beginning`
  return { reader: { name, caller, seen, isOnce: true }, isAtEnd: () => atEnd }
}

const ID = /^id: (.*)$/m
const DATA = /^data: (.*)$/m

/** Server-sent events; a stream that breaks is taken up again behind the last event that came. */
export const followStream = ({ client, caller, isOver }: Following): FactReader => {
  const seen: Seen[] = []
  let lastEventId: string | undefined
  const take = (chunk: string | Uint8Array): Promise<void> => {
    for (const text of chunk.toString().split('\n\n')) {
      const data = DATA.exec(text)?.[1]
      if (data !== undefined) seen.push(seenOf(JSON.parse(data)))
      lastEventId = ID.exec(text)?.[1] ?? lastEventId
    }
    return Promise.resolve()
  }
  const read = async (answer: Answer): Promise<void> => {
    const gone = new AbortController()
    // A stream that fails on the way ends; the client connects again.
    const ended = answer.stream?.(take, gone.signal).catch(() => undefined)
    await Promise.race([ended, client.disconnected()])
    gone.abort()
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
