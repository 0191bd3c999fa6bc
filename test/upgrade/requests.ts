import { setTimeout as sleep } from 'node:timers/promises'
import { reasonOf } from '../../src/lib/connectionFailures.ts'

/** Sends requests to the instances of the API in turn, as clients that know both addresses do, and counts what failed. */

/**
 * What clients must survive while an instance is replaced:
 *   refused        nobody accepted the connection, so nothing was sent;
 *   reset          the connection broke off before the whole answer;
 *   shutting_down  the instance answered 503, so nothing was done;
 *   overloaded     likewise, of an instance that sheds load.
 * And all else, which is a finding.
 */
const KINDS = ['reset', 'refused', 'shutting_down', 'overloaded', 'other'] as const
export type FailureKind = (typeof KINDS)[number]

export type Counts = {
  requests: number
  readonly failures: Record<FailureKind, number>
  /** The failures of the kind `other`, by what failed. */
  readonly others: Map<string, number>
}

export type Requests = {
  readonly counts: Counts
  /** The address that is next in turn. */
  readonly nextApi: () => string
  readonly fetch: typeof fetch
  /** Counts what came instead of an answer. */
  readonly noteError: (error: unknown, path: string, init?: RequestInit) => void
  /** Counts the answer if it is a failure. */
  readonly noteAnswer: (status: number, body: ArrayBuffer, path: string, init?: RequestInit) => void
}

const NO_BODY = new Set([204, 304])
/** 409 and 412 answer an approval that is repeated after its answer was lost. */
const ANSWERS = new Set([200, 201, 202, 204, 304, 409, 412])
const REFUSED = 'ECONNREFUSED'
const RESET = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
const DEFERRED: readonly string[] = ['shutting_down', 'overloaded'] satisfies FailureKind[]
const ID = /\b[a-z]{2,3}_[0-9A-Z]{26}\b/g

const isDeferred = (code: string): code is FailureKind => DEFERRED.includes(code)

const codeIn = (body: ArrayBuffer): string => /"code": ?"(\w+)"/.exec(Buffer.from(body).toString())?.[1] ?? ''

const codeOf = (error: unknown): string => {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  return cause?.code ?? ''
}

/** What `createRequests` counts, and how it tells the kinds apart. */
const createCounter = (): Pick<Requests, 'counts' | 'noteError' | 'noteAnswer'> => {
  const failures = { reset: 0, refused: 0, shutting_down: 0, overloaded: 0, other: 0 }
  const counts: Counts = { requests: 0, failures, others: new Map() }
  const noteOther = (how: string, path: string, init: RequestInit | undefined): void => {
    const what = `${how}: ${init?.method ?? 'GET'} ${path.replace(/\?.*/, '').replaceAll(ID, '{id}')}`
    failures.other += 1
    counts.others.set(what, (counts.others.get(what) ?? 0) + 1)
  }
  return {
    counts,
    noteError: (error, path, init) => {
      const code = codeOf(error)
      if (init?.signal?.aborted === true) noteOther('no answer in time', path, init)
      else if (code === REFUSED) failures.refused += 1
      else if (RESET.has(code)) failures.reset += 1
      else noteOther(reasonOf(error), path, init)
    },
    noteAnswer: (status, body, path, init) => {
      const code = codeIn(body)
      if (status === 503 && isDeferred(code)) failures[code] += 1
      else if (!ANSWERS.has(status)) noteOther(`${status} ${code}`, path, init)
    },
  }
}

export const createRequests = (apis: readonly string[]): Requests => {
  const { counts, noteError, noteAnswer } = createCounter()
  let turn = 0
  const nextApi = (): string => apis[(turn += 1) % apis.length] ?? ''
  /** An instance that accepts no connection has got nothing, so the next one is asked, as a load balancer does. */
  const send = async (path: string, init: RequestInit | undefined): Promise<Response> => {
    const first = nextApi()
    for (const api of [first, ...apis.filter(other => other !== first)]) {
      try {
        return await fetch(`${api}${path}`, init)
      } catch (error) {
        if (codeOf(error) !== REFUSED) throw error
        noteError(error, path, init)
      }
    }
    throw new Error('no instance accepts connections')
  }
  const receive = async (path: string, init: RequestInit | undefined): Promise<Response> => {
    const answer = await send(path, init)
    const { status, headers } = answer
    // Read here, so that an answer that breaks off is counted.
    const body = await answer.arrayBuffer()
    noteAnswer(status, body, path, init)
    return new Response(NO_BODY.has(status) ? null : body, { status, headers })
  }
  return {
    counts,
    noteError,
    noteAnswer,
    nextApi,
    fetch: async (input, init) => {
      const { pathname, search } = new URL(input instanceof Request ? input.url : input)
      counts.requests += 1
      try {
        return await receive(`${pathname}${search}`, init)
      } catch (error) {
        noteError(error, pathname, init)
        throw error
      }
    },
  }
}

/** The lines of the report on failures, and a finding for each that no client has to expect. */
export const describeFailures = ({ failures, others }: Counts) => ({
  lines: [
    `failures, each resolved by the same request with the same key: ${KINDS.map(kind => `${failures[kind]} ${kind}`).join(', ')}`,
    ...[...others].map(([what, count]) => `  other, ${count} times: ${what}`),
  ],
  findings: [...others.keys()].map(what => `A request failed: ${what}.`),
})

const RECONNECT_MS = 250
const PATH = '/events'

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
    const answer = await fetch(`${requests.nextApi()}${PATH}`, { headers, signal })
    if (!answer.ok) return requests.noteAnswer(answer.status, await answer.arrayBuffer(), PATH)
    const { body } = answer
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
      await read().catch((error: unknown) => {
        if (!signal.aborted) requests.noteError(error, PATH)
      })
      await sleep(RECONNECT_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  return { followed, ended: follow() }
}
