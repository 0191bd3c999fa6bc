import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { anOrder, clientOf, inParallel } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { dial } from '../../support/rawHttp.ts'

/** More requests than a process handles at once. */
const SOCKETS = 1_100
const ORDER = JSON.stringify(anOrder())
const RETRY_MAX_MS = 5_000
const RETRY_EVERY_MS = 500

describe('callers that send a head and no body', () => {
  let service: TestService
  let sockets: Socket[] = []
  before(async () => {
    service = await sharedService()
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    sockets = []
  })

  const open = async (head: readonly string[]): Promise<void> => {
    const bytes = [...head, `Host: ${new URL(service.api).host}`, '', ''].join('\r\n')
    sockets = await inParallel(100, Array.from({ length: SOCKETS }), async () => {
      const socket = await dial(service.api)
      socket.write(bytes)
      return socket
    })
    // A later request that is answered shows that the earlier ones have been read.
    expect((await clientOf(service.api).get('/livez')).status).to.equal(200)
  }

  /**
   * The status of a response. Refusals of a busy event loop are retried for a time that is much shorter than the deadline of
   * the bodies, at which the service would release what they occupy in any case.
   */
  const statusOf = async (path: string, init: RequestInit = {}): Promise<number> => {
    const startedAtMs = performance.now()
    for (;;) {
      const { status } = await fetch(`${service.api}${path}`, init)
      if (status !== 503 || performance.now() - startedAtMs > RETRY_MAX_MS) return status
      await sleep(RETRY_EVERY_MS)
    }
  }

  const grant = new URLSearchParams({ grant_type: 'client_credentials' }).toString()
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  for (const [what, head] of [
    [
      'a valid token',
      async () => [
        'POST /orders HTTP/1.1',
        `Authorization: Bearer ${await service.token({ tenant: 'bodiless' })}`,
        'Content-Type: application/json',
        `Content-Length: ${ORDER.length}`,
      ],
    ],
    [
      'no token, to the token endpoint',
      async () => ['POST /oauth/token HTTP/1.1', `Content-Type: ${form['content-type']}`, 'Content-Length: 100'],
    ],
    [
      'no token, to the token endpoint and in chunks',
      async () => ['POST /oauth/token HTTP/1.1', `Content-Type: ${form['content-type']}`, 'Transfer-Encoding: chunked'],
    ],
  ] as const)
    it(`with ${what} block neither other callers nor the same one`, async () => {
      await open(await head())
      const tokens = [await service.token({ tenant: 'another' }), await service.token({ tenant: 'bodiless' })]
      for (const token of tokens) {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        expect(await statusOf('/orders?limit=1', { headers })).to.equal(200)
        expect(await statusOf('/orders', { method: 'POST', headers, body: ORDER })).to.equal(201)
      }
      // The request names no client, so the issuer itself refuses it.
      expect(await statusOf('/oauth/token', { method: 'POST', headers: form, body: grant })).to.be.within(400, 401)
      const answered = () => sockets.filter(socket => socket.bytesRead > 0).length
      await eventually(async () => answered() >= SOCKETS - 1_000)
    })

  it('are served when they send the body later', async () => {
    const token = await service.token({ tenant: 'another' })
    const socket = await dial(service.api)
    sockets = [socket]
    let text = ''
    socket.on('data', chunk => (text += String(chunk)))
    const head = [
      'POST /oauth/token HTTP/1.1',
      `Host: ${new URL(service.api).host}`,
      `Content-Type: ${form['content-type']}`,
    ]
    socket.write([...head, `Content-Length: ${grant.length}`, '', grant.slice(0, 5)].join('\r\n'))
    expect(await statusOf('/orders?limit=1', { headers: { authorization: `Bearer ${token}` } })).to.equal(200)
    expect(text).to.equal('')
    socket.write(grant.slice(5))
    await eventually(async () => text.includes('invalid_'))
    expect(text).to.match(/^HTTP\/1.1 40[01] /)
  })
})
