import { setTimeout as sleep } from 'node:timers/promises'

/** Sends requests to the instances of the API in turn, as clients that know both addresses do, and counts how they ended. */

export type Counts = {
  requests: number
  /** Connections that nobody accepted. Nothing was sent. */
  refused: number
  /** Connections that broke off before the whole answer. */
  reset: number
  /** Answers that no client has to expect, by status and path. */
  readonly failures: Map<string, number>
  /** Answers without an effect that tell the client to repeat the request, by code. */
  readonly deferred: Map<string, number>
}

export type Requests = {
  readonly counts: Counts
  /** The address that is next in turn. */
  readonly nextApi: () => string
  readonly fetch: typeof fetch
}

const NO_BODY = new Set([204, 304])
/** 409 and 412 answer an approval that is repeated after its answer was lost. */
const ANSWERS = new Set([200, 201, 202, 204, 304, 409, 412])
/** Of an instance that is going to end, or that sheds load. */
const DEFERRED = new Set(['shutting_down', 'overloaded'])
const ID = /\b[a-z]{2,3}_[0-9A-Z]{26}\b/g

const codeIn = (body: ArrayBuffer): string => /"code": ?"(\w+)"/.exec(Buffer.from(body).toString())?.[1] ?? ''

const codeOf = (error: unknown): string => {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  return cause?.code ?? ''
}

export const createRequests = (apis: readonly string[]): Requests => {
  const counts: Counts = { requests: 0, refused: 0, reset: 0, failures: new Map(), deferred: new Map() }
  let turn = 0
  const nextApi = (): string => apis[(turn += 1) % apis.length] ?? ''
  const add = (to: Map<string, number>, what: string): void => void to.set(what, (to.get(what) ?? 0) + 1)
  const noteFailure = (how: string, path: string, init: RequestInit | undefined): void => {
    add(counts.failures, `${how}: ${init?.method ?? 'GET'} ${path.replace(/\?.*/, '').replaceAll(ID, '{id}')}`)
  }
  /** An instance that accepts no connection has got nothing, so the next one is asked, as a load balancer does. */
  const send = async (path: string, init: RequestInit | undefined): Promise<Response> => {
    const first = nextApi()
    for (const api of [first, ...apis.filter(other => other !== first)]) {
      try {
        return await fetch(`${api}${path}`, init)
      } catch (error) {
        if (codeOf(error) !== 'ECONNREFUSED') throw error
        counts.refused += 1
      }
    }
    throw new Error('No instance accepts connections.')
  }
  const receive = async (path: string, init: RequestInit | undefined): Promise<Response> => {
    const answer = await send(path, init)
    const { status, headers } = answer
    // Read here, so that an answer that breaks off is counted.
    const body = await answer.arrayBuffer()
    const code = codeIn(body)
    if (DEFERRED.has(code)) add(counts.deferred, code)
    else if (!ANSWERS.has(status)) noteFailure(`${status} ${code}`, path, init)
    return new Response(NO_BODY.has(status) ? null : body, { status, headers })
  }
  return {
    counts,
    nextApi,
    fetch: async (input, init) => {
      const { pathname, search } = new URL(input instanceof Request ? input.url : input)
      counts.requests += 1
      try {
        return await receive(`${pathname}${search}`, init)
      } catch (error) {
        if (init?.signal?.aborted === true) noteFailure('no answer in time', pathname, init)
        else counts.reset += 1
        throw error
      }
    },
  }
}

const RECONNECT_MS = 250

type Followed = { readonly ids: string[]; connections: number }

/** Follows GET /events as an event stream, and continues after the last event wherever a connection ends. */
export const followEvents = (
  requests: Requests,
  token: () => Promise<string>,
  signal: AbortSignal,
): { readonly followed: Followed; readonly ended: Promise<void> } => {
  const followed: Followed = { ids: [], connections: 0 }
  let last: string | undefined
  const take = (event: string): void => {
    const members = new Map(event.split('\n').map(line => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)]))
    last = members.get('id') ?? last
    const data = members.get('data')
    if (data !== undefined) followed.ids.push((JSON.parse(data) as { id: string }).id)
  }
  const read = async (): Promise<void> => {
    const authorization = `Bearer ${await token()}`
    const headers = { accept: 'text/event-stream', authorization, ...(last !== undefined && { 'last-event-id': last }) }
    const { ok, body } = await fetch(`${requests.nextApi()}/events`, { headers, signal })
    if (!ok) return body?.cancel()
    followed.connections += 1
    let rest = ''
    for await (const chunk of (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const events = (rest + chunk).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) take(event)
    }
  }
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      await read().catch(() => undefined)
      await sleep(RECONNECT_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  return { followed, ended: follow() }
}
