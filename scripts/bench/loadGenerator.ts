import { connect, type Socket } from 'node:net'
import type { Sample } from './measure.ts'

/**
 * A load generator with little CPU cost, since it shares the machine with the server under test: HTTP/1.1 over
 * persistent sockets, one request in flight on each, responses delimited by Content-Length.
 */
export type Load = {
  /** `http://127.0.0.1:8080` */
  readonly base: string
  readonly connections: number
  readonly seconds: number
  /** The next complete request of a connection; undefined when it has none left. */
  readonly next: (connection: number) => string | undefined
  /** The expected status. Any other one ends the run, since a benchmark of failing requests measures nothing. */
  readonly status: number
  /** Called with the body of each expected response. An error that it throws ends the run. */
  readonly onBody?: (connection: number, body: string) => void
}

const HEAD_END = '\r\n\r\n'
const STATUS_AT = 9
const LENGTH = /\r\ncontent-length: (\d+)/i

/** The complete request with headers and body. `headers` are lines without line ends. */
export const requestOf = (method: string, path: string, headers: readonly string[], body = ''): string => {
  const length =
    method === 'GET' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]
  return `${[`${method} ${path} HTTP/1.1`, 'host: localhost', ...headers, ...length].join('\r\n')}${HEAD_END}${body}`
}

/** Runs until the time is over or no connection has another request. Throws on the first unexpected response. */
export const load = async (wanted: Load): Promise<Sample> => {
  const { hostname, port } = new URL(wanted.base)
  const latenciesMs: number[] = []
  const sockets = await Promise.all(Array.from({ length: wanted.connections }, () => open(hostname, Number(port))))
  const begun = performance.now()
  const end = begun + wanted.seconds * 1000
  try {
    await Promise.all(sockets.map((socket, connection) => lane(wanted, { socket, connection, end, latenciesMs })))
    return { count: latenciesMs.length, seconds: (performance.now() - begun) / 1000, latenciesMs }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

type Lane = {
  readonly socket: Socket
  readonly connection: number
  /** On the clock of `performance.now()`. */
  readonly end: number
  readonly latenciesMs: number[]
}

/** The requests of one connection, each sent when the one before it was answered. */
const lane = ({ next, status, onBody }: Load, { socket, connection, end, latenciesMs }: Lane): Promise<void> =>
  new Promise((resolve, reject) => {
    let sentAt = 0
    let answer = ''
    const send = (): void => {
      const request = performance.now() < end ? next(connection) : undefined
      if (request === undefined) return resolve()
      sentAt = performance.now()
      socket.write(request)
    }
    socket.on('data', (chunk: string) => {
      answer += chunk
      if (!isWhole(answer)) return
      latenciesMs.push(performance.now() - sentAt)
      try {
        if (Number(answer.slice(STATUS_AT, STATUS_AT + 3)) !== status) throw new Error(`Unexpected: ${answer}`)
        onBody?.(connection, answer.slice(answer.indexOf(HEAD_END) + HEAD_END.length))
        answer = ''
        send()
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)))
      }
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('The server closed a connection.')))
    send()
  })

// In latin1 one character is one byte, so that lengths can be compared without decoding.
const open = (host: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => resolve(socket.setEncoding('latin1')))
    socket.once('error', reject)
  })

const isWhole = (answer: string): boolean => {
  const head = answer.indexOf(HEAD_END)
  if (head < 0) return false
  const length = Number(LENGTH.exec(answer)?.[1] ?? 0)
  return answer.length >= head + HEAD_END.length + length
}
