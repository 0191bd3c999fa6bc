import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { createPipelining } from '../../../src/http/admission/pipelining.ts'
import { eventually } from '../../support/eventually.ts'

const REQUEST = 'GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** A server whose requests wait until the test answers them. */
const start = async () => {
  const inTurn = createPipelining()
  const begun: ServerResponse[] = []
  let parsed = 0
  let closed = 0
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    parsed++
    res.once('close', () => closed++)
    inTurn(req, res, () => begun.push(res))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let received = ''
  socket.on('data', chunk => (received += String(chunk)))
  return {
    socket,
    begun,
    parsed: () => parsed,
    closed: () => closed,
    answers: () => received.split('HTTP/1.1 200').length - 1,
    close: () => {
      socket.destroy()
      server.close()
    },
  }
}

describe('pipelined requests', () => {
  let opened: Awaited<ReturnType<typeof start>>
  beforeEach(async () => {
    opened = await start()
  })
  afterEach(() => opened.close())

  it('are at work eight at a time, and the connection is not read meanwhile', async () => {
    const { socket, begun, parsed } = opened
    socket.write(REQUEST.repeat(20))
    await eventually(() => begun.length === 8 && parsed() === 20)
    socket.write(REQUEST.repeat(20))
    for (let turn = 0; turn < 100; turn++) await nextTurn()
    expect([begun.length, parsed()]).to.deep.equal([8, 20])
  })

  it('close their connection when 56 wait, and no more of them are kept', async () => {
    const { socket, begun, parsed } = opened
    const closed = new Promise(resolve => socket.once('close', resolve))
    socket.on('error', () => undefined)
    socket.write(REQUEST.repeat(400_000))
    await closed
    expect(begun).to.have.length(8)
    // Node had read at most 64 KiB at once.
    expect(parsed()).to.be.lessThan(2_000)
  })

  const answering = async (isDone: () => boolean): Promise<void> => {
    const pump = setInterval(() => {
      for (const res of opened.begun.splice(0)) res.end('ok')
    }, 1)
    try {
      await eventually(isDone)
    } finally {
      clearInterval(pump)
    }
  }

  it('are all answered, in their order', async () => {
    opened.socket.write(REQUEST.repeat(64))
    await answering(() => opened.answers() === 64)
    opened.socket.write(REQUEST.repeat(64))
    await answering(() => opened.answers() === 128)
  })

  it('are all closed with their connection, also those behind the first', async () => {
    const { socket, begun, parsed, closed } = opened
    socket.write(REQUEST.repeat(20))
    await eventually(() => begun.length === 8 && parsed() === 20)
    begun[0]?.socket?.destroy()
    await eventually(() => closed() === 20)
    expect(begun, 'the end of the first begins no other').to.have.length(8)
  })

  it('are closed when an answer finds that the client has gone', async () => {
    const { socket, parsed, closed } = opened
    socket.write(REQUEST.repeat(20))
    await eventually(() => parsed() === 20)
    socket.destroy()
    await answering(() => closed() === 20)
  })
})
