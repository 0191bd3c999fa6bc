import { connect, type Socket } from 'node:net'
import type { Sample } from './measure.ts'

/** Takes little CPU time, as it shares the machine with the server: HTTP/1.1, one request in flight on each socket. */
export type Load = {
  /** `http://127.0.0.1:8080` */
  readonly base: string
  readonly connections: number
  readonly seconds: number
  /** Requests are sent at this rate; without it, each connection sends its next one when the last was answered. */
  readonly perSecond?: number
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
const TICK_MS = 1

/** The complete request with headers and body. `headers` are lines without line ends. */
export const requestOf = (method: string, path: string, headers: readonly string[], body = ''): string => {
  const length =
    method === 'GET' ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]
  return `${[`${method} ${path} HTTP/1.1`, 'host: localhost', ...headers, ...length].join('\r\n')}${HEAD_END}${body}`
}

/** Runs until the time is over or no connection has another request. Throws on the first unexpected response. */
export const load = async (plan: Load): Promise<Sample> => {
  const { hostname, port } = new URL(plan.base)
  const sockets = await Promise.all(Array.from({ length: plan.connections }, () => open(hostname, Number(port))))
  const begun = performance.now()
  try {
    const latenciesMs = await (plan.perSecond === undefined ? sendInTurn : sendAtRate)(plan, sockets)
    return { count: latenciesMs.length, seconds: (performance.now() - begun) / 1000, latenciesMs }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** Resolves to the latencies. */
type Sending = (plan: Load, sockets: readonly Socket[]) => Promise<number[]>

/** Each connection sends its next request when the one before it was answered. */
const sendInTurn: Sending = async (plan, sockets) => {
  const latenciesMs: number[] = []
  const end = performance.now() + plan.seconds * 1000
  const lane = (socket: Socket, connection: number): Promise<void> =>
    new Promise((resolve, reject) => {
      let sentAt = 0
      const send = (): void => {
        const request = performance.now() < end ? plan.next(connection) : undefined
        if (request === undefined) return resolve()
        sentAt = performance.now()
        socket.write(request)
      }
      const onAnswer = (nowMs: number): void => {
        latenciesMs.push(nowMs - sentAt)
        send()
      }
      receive(plan, { socket, connection, onAnswer, onError: reject })
      send()
    })
  await Promise.all(sockets.map(lane))
  return latenciesMs
}

/**
 * Sends at a constant rate, however late the responses are, on the connection that has been free for longest. The
 * latencies are in the order of the requests and count from the moment at which each was due, so that they include the
 * time for which a request waited for a free connection.
 */
const sendAtRate: Sending = ({ seconds, perSecond = 0, ...plan }, sockets) =>
  new Promise((resolve, reject) => {
    const latenciesMs: number[] = []
    const count = Math.floor(seconds * perSecond)
    const free = [...sockets.keys()]
    const sent: number[] = []
    const begun = performance.now()
    const dueMs = (at: number): number => begun + (at * 1000) / perSecond
    let [begunCount, answered] = [0, 0]
    const sendDue = (): void => {
      while (begunCount < count && dueMs(begunCount) <= performance.now()) {
        const connection = free.shift()
        if (connection === undefined) return
        const request = plan.next(connection)
        if (request === undefined) return fail(new Error('A connection has no request left.'))
        sent[connection] = begunCount++
        sockets[connection]?.write(request)
      }
    }
    const timer = setInterval(sendDue, TICK_MS)
    const fail = (error: Error): void => {
      clearInterval(timer)
      reject(error)
    }
    for (const [connection, socket] of sockets.entries()) {
      const onAnswer = (nowMs: number): void => {
        const at = sent[connection] ?? 0
        latenciesMs[at] = nowMs - dueMs(at)
        free.push(connection)
        if (++answered < count) return sendDue()
        clearInterval(timer)
        resolve(latenciesMs)
      }
      receive(plan, { socket, connection, onAnswer, onError: fail })
    }
  })

type Receiver = {
  readonly socket: Socket
  readonly connection: number
  /** Called after `onBody`, with the time at which the response was whole. */
  readonly onAnswer: (nowMs: number) => void
  readonly onError: (error: Error) => void
}

const receive = (
  { status, onBody }: Pick<Load, 'status' | 'onBody'>,
  { socket, connection, onAnswer, onError }: Receiver,
): void => {
  let answer = ''
  socket.on('data', (chunk: string) => {
    answer += chunk
    if (!isWhole(answer)) return
    const nowMs = performance.now()
    const whole = answer
    answer = ''
    try {
      if (Number(whole.slice(STATUS_AT, STATUS_AT + 3)) !== status) throw new Error(`Unexpected: ${whole}`)
      onBody?.(connection, whole.slice(whole.indexOf(HEAD_END) + HEAD_END.length))
      onAnswer(nowMs)
    } catch (error) {
      onError(error instanceof Error ? error : new Error(String(error)))
    }
  })
  socket.on('error', onError)
  socket.on('close', () => onError(new Error('The server closed a connection.')))
}

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
