import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { eventually } from '../support/eventually.ts'
import { createRequests, describeFailures, followEvents } from './requests.ts'

describe('the failures of the load of npm run upgrade', () => {
  const servers: Server[] = []
  const open = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const problem = (status: number, code: string): Promise<string> =>
    open((_, response) => response.writeHead(status).end(JSON.stringify({ code })))
  const nobody = async (): Promise<string> => `http://127.0.0.1:${await findFreePort('127.0.0.1')}`
  const ok = (): Promise<string> => open((_, response) => response.end('{}'))
  /** The failures of one request to these instances, and what the report says of them. */
  const failuresOf = async (apis: readonly string[], init?: RequestInit) => {
    const { fetch, counts } = createRequests(apis)
    for (let n = 0; n < apis.length; n += 1)
      await fetch('http://localhost/orders/ord_01JZZZZZZZZZZZZZZZZZZZZZZZ?a=b', init).catch(() => undefined)
    return { failures: counts.failures, ...describeFailures(counts) }
  }
  const none = { reset: 0, refused: 0, shutting_down: 0, overloaded: 0, other: 0 }

  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections()
  })

  it('has an instance that is going to end apart from connections that broke off', async () => {
    const { failures, lines, findings } = await failuresOf([await problem(503, 'shutting_down')])
    expect(failures).to.deep.equal({ ...none, shutting_down: 1 })
    expect(lines).to.deep.equal([
      'failures, each resolved by the same request with the same key: 0 reset, 0 refused, 1 shutting_down, 0 overloaded, 0 other',
    ])
    expect(findings).to.deep.equal([])
  })

  it('has an instance that sheds load', async () => {
    expect((await failuresOf([await problem(503, 'overloaded')])).failures).to.deep.equal({ ...none, overloaded: 1 })
  })

  it('has a connection that breaks off before the answer, and within it', async () => {
    const before = await open(request => request.socket.destroy())
    const within = await open((request, response) => {
      response.writeHead(200, { 'content-length': '9' }).write('{', () => request.socket.resetAndDestroy())
    })
    const { failures, findings } = await failuresOf([before, within])
    expect(failures).to.deep.equal({ ...none, reset: 2 })
    expect(findings).to.deep.equal([])
  })

  it('has an instance that accepts no connection, and asks the next one', async () => {
    const { failures, findings } = await failuresOf([await nobody(), await ok()])
    expect(failures).to.deep.equal({ ...none, refused: 1 })
    expect(findings).to.deep.equal([])
  })

  it('finds all else: an error, a code of the wrong status, no answer in time, nonsense, no instance', async () => {
    for (const [apis, finding, init] of [
      [[await problem(500, 'internal_error')], 'A request failed: 500 internal_error: GET /orders/{id}.'],
      [
        [await problem(400, 'shutting_down')],
        'A request failed: 400 shutting_down: POST /orders/{id}.',
        { method: 'POST' },
      ],
      [
        [await open(() => undefined)],
        'A request failed: no answer in time: GET /orders/{id}.',
        { signal: AbortSignal.timeout(100) },
      ],
      [
        [await open(({ socket }) => socket.end('nonsense\r\n\r\n'))],
        'A request failed: Response does not match the HTTP/1.1 protocol',
      ],
      [[await nobody()], 'A request failed: no instance accepts connections: GET /orders/{id}.'],
    ] as const) {
      const { failures, lines, findings } = await failuresOf(apis, init)
      expect(findings).to.have.length(1)
      expect(findings[0]).to.include(finding)
      expect(failures.other, finding).to.equal(1)
      expect(lines.at(-1), finding).to.match(/^ {2}other, 1 times: /)
    }
  })

  it('has those of the event stream, but not its end', async () => {
    const answers: readonly RequestListener[] = [
      (_, response) => response.writeHead(503).end('{"code":"shutting_down"}'),
      (request, response) => response.write('id: 1\ndata: {"id":"f1"}\n\n', () => request.socket.resetAndDestroy()),
      (_, response) => response.writeHead(500).end('{"code":"internal_error"}'),
      (_, response) => response.write('id: 2\ndata: {"id":"f2"}\n\n'),
    ]
    let asked = 0
    const requests = createRequests([await open((...exchange) => answers[Math.min(asked++, 3)]?.(...exchange))])
    const stop = new AbortController()
    const { followed, ended } = followEvents(requests, async () => 'token', stop.signal)
    await eventually(() => followed.ids.length === 2)
    stop.abort()
    await ended
    expect(requests.counts.failures).to.deep.equal({ ...none, shutting_down: 1, reset: 1, other: 1 })
    expect(describeFailures(requests.counts).findings).to.deep.equal([
      'A request failed: 500 internal_error: GET /events.',
    ])
  })
})
