import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { sendReply } from '../../../src/http/response/respond.ts'
import type { Streamed } from '../../../src/http/route.ts'

describe('a response that is sent in parts', () => {
  let server: Server
  const answerOf = async (stream: Streamed, headers: Record<string, string> = {}): Promise<string> => {
    server = createServer((req, res) => {
      sendReply(req, Object.assign(res, { locals: {} }), { status: 200, stream, headers }).catch(() => undefined)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const answer = await fetch(`http://127.0.0.1:${port}`)
    return answer.text()
  }
  const failing: Streamed = async send => {
    await send('{"items":')
    throw new Error('The rest cannot be read.')
  }
  const outcomeOf = (answer: Promise<string>): Promise<string> =>
    answer.then(text => `complete: ${text}`).catch(() => 'broken')

  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  it('is complete after its last part', async () => {
    expect(await outcomeOf(answerOf(send => send('[]')))).to.equal('complete: []')
  })

  it('does not look complete when a part fails', async () => {
    expect(await outcomeOf(answerOf(failing))).to.equal('broken')
  })

  it('does not look complete when a part fails after its length was sent', async () => {
    expect(await outcomeOf(answerOf(failing, { 'Content-Length': '100' }))).to.equal('broken')
  })
})
