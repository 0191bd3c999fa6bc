import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A process that attacks a service with valid credentials in several ways at once, each request as soon as the one before is
 * answered. It starts and pauses at its parent's messages, and reports the statuses that it got.
 */

export type Target = {
  readonly api: string
  readonly token: string
  /** A token of the same tenant without any of the needed scopes. */
  readonly withoutScope: string
  readonly expired: string
}

type Asked = {
  readonly method?: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

const target = JSON.parse(process.argv[2] ?? '{}') as Target
const { hostname, port, host } = new URL(target.api)
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
const counts: Record<string, number> = {}
/** The number of the present attack; requests of earlier ones that are still in progress are not repeated. */
let attack: number | undefined
let attacks = 0

const count = (outcome: string): void => void (counts[outcome] = (counts[outcome] ?? 0) + 1)

const ask = ({ method = 'GET', path, headers = {}, body }: Asked): Promise<void> =>
  new Promise(resolve => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const json = text === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length }
    const outgoing = request({ agent, hostname, port, method, path, headers: { ...headers, ...json } }, answer => {
      count(String(answer.statusCode))
      answer.resume().on('close', resolve)
      if (answer.headers['content-type'] === 'text/event-stream') setTimeout(() => answer.destroy(), 2_000).unref()
    })
    outgoing.on('error', () => {
      count('error')
      resolve()
    })
    outgoing.end(text)
  })

const authorization = (token: string) => ({ authorization: `Bearer ${token}` })
const names = Array.from({ length: 2_500 }, (_, index) => index.toString(36))
  .join('&')
  .slice(0, 7_900)
const own = authorization(target.token)

/** The numbers of concurrent requests of each kind. */
const requests: readonly (readonly [concurrent: number, asked: Asked])[] = [
  [4, { path: `/livez?${names}` }],
  [4, { path: `/orders?${names}`, headers: own }],
  [4, { method: 'POST', path: '/exports', headers: authorization(target.withoutScope), body: {} }],
  [4, { path: '/events?subject=nothing-has-this-subject', headers: own }],
  [4, { path: '/orders', headers: authorization('no.token.this') }],
  [4, { path: '/orders', headers: authorization(target.expired) }],
  [4, { method: 'POST', path: '/subscriptions', headers: own, body: { types: ['invoice.paid'], start: 'beginning' } }],
  [4, { path: `/orders?created_after=2026-01-01T00:00:00.${'1'.repeat(200)}Z`, headers: own }],
  [50, { path: '/readyz' }],
  [50, { path: '/orders', headers: { ...own, 'if-min-position': '999999999999', prefer: 'wait=8' } }],
  [50, { path: '/events', headers: { ...own, accept: 'text/event-stream' } }],
]

/** Requests whose bodies never arrive. */
const heads = [
  ['POST /orders HTTP/1.1', `Authorization: Bearer ${target.token}`, 'Content-Type: application/json'],
  ['POST /oauth/token HTTP/1.1', 'Content-Type: application/x-www-form-urlencoded'],
].map(head => [...head, `Host: ${host}`, 'Content-Length: 100', '', ''].join('\r\n'))
const SOCKETS_PER_HEAD = 300
const REOPEN_MS = 100

/** Sends a head without a body, again after each disconnection. */
const holdOpen = async (head: string, own: number): Promise<void> => {
  while (attack === own) {
    const socket: Socket = connect(Number(port), hostname)
    socket.on('error', () => undefined).on('data', () => undefined)
    socket.write(head)
    held.add(socket)
    await new Promise(resolve => socket.once('close', resolve))
    held.delete(socket)
    count('disconnected')
    await sleep(REOPEN_MS)
  }
}
const held = new Set<Socket>()

const repeat = async (requested: Asked, own: number): Promise<void> => {
  while (attack === own) await ask(requested)
}

process.on('message', (message: 'begin' | 'pause') => {
  if (message === 'pause') {
    attack = undefined
    for (const socket of held) socket.destroy()
    process.send?.(counts)
    return
  }
  const own = (attacks += 1)
  attack = own
  for (const [concurrent, requested] of requests) for (let n = 0; n < concurrent; n++) void repeat(requested, own)
  for (const head of heads) for (let n = 0; n < SOCKETS_PER_HEAD; n++) void holdOpen(head, own)
})
process.on('disconnect', () => process.exit())
process.send?.({})
