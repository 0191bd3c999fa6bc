import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkEvery, checkResponse } from './openapiCheck.ts'
import { type Answer, isOverloaded, parsedJson, retryWhile } from './client.ts'

/** A request on the wire: headers may be duplicated, and the body may never end. */
export type Wire = {
  readonly method: string
  readonly path: string
  /** Names and values, without Host. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: string | Uint8Array
  /** Sends the head and omits the rest of the body. */
  readonly unfinished?: boolean
}

/** The response, checked against the contract. Sent again while the service sheds load, as the tests' client does. */
export const send = (api: string, wire: Wire): Promise<Answer> => retryWhile(() => sendOnce(api, wire), isOverloaded)

/** The first response, for tests of load shedding. */
export const sendOnce = async (api: string, { method, path, headers, body, unfinished }: Wire): Promise<Answer> => {
  const { host, hostname, port } = new URL(api)
  const length = body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body) + (unfinished ? 1 : 0))]]
  const flat = [['Host', host], ...headers, ...length].flat()
  const answer = await new Promise<Answer>((resolve, reject) => {
    const outgoing = request({ method, path, hostname, port, agent: false, headers: flat }, incoming => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const pairs = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)])
        resolve({ status: incoming.statusCode ?? 0, headers: new Headers(pairs), text, body: parsedJson(text) })
      })
    })
    outgoing.on('error', reject)
    // The body is sent as bytes, because before a string Node would encode the headers in UTF-8 too.
    if (body !== undefined) outgoing.write(Buffer.from(body))
    if (!unfinished) outgoing.end()
  })
  await checkResponse({ method, path, ...answer })
  return answer
}

/** A raw connection that sends only the given bytes, and stays open until it is closed. */
export const dial = async (api: string): Promise<Socket> => {
  const socket = connect({ port: Number(new URL(api).port), host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

export type Exchange = {
  /** Responses with a final status. */
  readonly answers: readonly Answer[]
  /** Interim statuses such as 100. */
  readonly interim: readonly number[]
  /** Whether the service has closed the connection. */
  readonly closed: boolean
}

export type Awaited = {
  /** The number of expected responses; an additional one directly after them is noticed too. */
  readonly answers: number
  /** Ends the sending side. */
  readonly end?: boolean
  readonly maxMs?: number
}

const LOOK_EVERY_MS = 2
/** The wait for an additional response on a connection that stays open. */
const ADDITIONAL_MS = 30
const EXCHANGE_MAX_MS = 120_000

/**
 * Sends bytes (Latin-1) that no client library would send, and reads the responses. Each is checked against the
 * promises for every response. After a response with `Connection: close` the service must close the connection. Repeated on a
 * new connection while the service sheds load. Throws after a time limit.
 */
export const exchange = (api: string, bytes: string, awaited: Awaited): Promise<Exchange> =>
  retryWhile(
    () => exchangeOnce(api, bytes, awaited),
    ({ answers }) => answers.some(isOverloaded),
  )

const exchangeOnce = async (api: string, bytes: string, awaited: Awaited): Promise<Exchange> => {
  const { answers: count, end = false, maxMs = EXCHANGE_MAX_MS } = awaited
  const socket = await dial(api)
  let text = ''
  let closed = false
  socket.on('data', chunk => (text += chunk.toString('latin1')))
  for (const event of ['end', 'close']) socket.once(event, () => (closed = true))
  const startedAtMs = performance.now()
  socket.write(bytes, 'latin1')
  if (end) socket.end()
  const isIncomplete = (): boolean => {
    const answers = answersIn(text).filter(isFinal)
    return answers.length < count || answers.at(-1)?.headers.get('connection') === 'close'
  }
  try {
    while (!closed && isIncomplete()) {
      await sleep(LOOK_EVERY_MS)
      if (performance.now() - startedAtMs > maxMs)
        throw new Error(`Not ${count} responses and their end in ${maxMs} ms, but ${JSON.stringify(text)}.`)
    }
    if (!closed) await sleep(ADDITIONAL_MS)
    const all = answersIn(text)
    const final = all.filter(isFinal)
    for (const answer of final) checkEvery({ method: 'GET', path: 'a raw request', ...answer })
    return { answers: final, interim: all.map(({ status }) => status).filter(status => status < 200), closed }
  } finally {
    socket.destroy()
  }
}

/** An interim 100 is not a final response. */
const isFinal = ({ status }: Answer): boolean => status >= 200

/** The complete responses in the received bytes, by their Content-Length. */
const answersIn = (received: string): Answer[] => {
  const head = /^HTTP\/1\.1 (\d{3})[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(received)
  if (head === null) {
    if (received !== '' && !'HTTP/1.1 '.startsWith(received.slice(0, 9))) throw new Error(`No answer: ${received}`)
    return []
  }
  const [whole, status, lines = ''] = head
  const headers = new Headers(lines.trimEnd().split('\r\n').filter(Boolean).map(pairOf))
  const length = Number(headers.get('content-length') ?? 0)
  const text = received.slice(whole.length, whole.length + length)
  if (text.length < length) return []
  return [
    { status: Number(status), headers, text, body: parsedJson(text) },
    ...answersIn(received.slice(whole.length + length)),
  ]
}

const pairOf = (line: string): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]
