import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { currentAccount } from '../../../src/fairness/currentAccount.ts'
import { sendReply } from '../../../src/http/response/respond.ts'
import type { Streamed } from '../../../src/http/route.ts'
import { eventually, standstill } from '../../support/eventually.ts'

const CHUNK = 'x'.repeat(64 * 1024)
const CHUNKS = 256

describe('a streamed response', () => {
  let server: Server
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  /** Serves the stream to one reader without socket buffering on the reader's side. */
  const read = async (stream: Streamed, locals = {}): Promise<IncomingMessage> => {
    server = createServer((req, res) => {
      const response = Object.assign(res, { locals }) as ServerResponse & { locals: Record<string, unknown> }
      void sendReply(req, response, { status: 200, stream, contentType: 'text/event-stream' })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const outgoing = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    return response
  }

  it('reaches a slow reader completely, and waits for it', async () => {
    let sent = 0
    const response = await read(async send => {
      for (; sent < CHUNKS; sent++) await send(CHUNK)
    })
    const sentUnread = await standstill(() => sent)
    let bytes = 0
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length
      if (bytes % 50 === 0) await sleep(1)
    }
    expect(bytes).to.equal(CHUNK.length * CHUNKS)
    expect(sentUnread, 'all was sent before anything was read').to.be.below(CHUNKS)
  })

  it('ends when its reader disconnects, also while it waits for the reader', async () => {
    let aborted = false
    let sent = 0
    const response = await read(async (send, signal) => {
      for (; !signal.aborted; sent++) await send(CHUNK)
      aborted = true
    })
    await standstill(() => sent)
    response.destroy()
    await eventually(async () => aborted)
  })

  it('is made in the account of its request, whose turn has ended', async () => {
    const account = { tenant: 'acme', caller: 'one' }
    let hasEnded = false
    const turn = { account: () => account, end: () => (hasEnded = true) }
    const seen: unknown[] = []
    const response = await read(
      async send => {
        await send('x')
        await sleep(1)
        seen.push(currentAccount(), hasEnded)
      },
      { turn },
    )
    await once(response.resume(), 'end')
    expect(seen).to.deep.equal([account, true])
  })
})
