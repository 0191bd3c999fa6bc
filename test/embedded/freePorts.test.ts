import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { findFreePort, holdFreePort, holdPort } from '../../src/embedded/freePorts.ts'
import { listen } from '../../src/http/index.ts'
import { rejectionOf } from '../support/rejection.ts'

const HOST = '127.0.0.1'
const COUNT = 100
const PORT_MAX = 65_535
const LEAST_BEGIN = 12_000
const RANGE = '/proc/sys/net/ipv4/ip_local_port_range'

const bound = async (port: number): Promise<Server> => {
  const server = createServer().listen(port, HOST)
  await once(server, 'listening')
  return server
}

describe('a free port', () => {
  it('is below those of outgoing connections', async () => {
    const outgoing = existsSync(RANGE) ? readFileSync(RANGE, 'utf8').trim().split(/\s+/).map(Number) : []
    const [begins = 0] = outgoing
    // Where the system gives almost all ports to outgoing connections, none are below them.
    const end = begins > LEAST_BEGIN ? begins : PORT_MAX
    for (let n = 0; n < COUNT; n += 1) expect(await findFreePort(HOST)).to.be.within(1_024, end)
  })

  it('is held until it is released: no other program can bind it', async () => {
    const { port, release } = await holdFreePort(HOST)
    expect(await rejectionOf(bound(port))).to.have.property('code', 'EADDRINUSE')
    await release()
    const server = await bound(port)
    server.close()
  })

  it('is another one for each that holds one', async () => {
    const held = await Promise.all(Array.from({ length: COUNT }, () => holdFreePort(HOST)))
    expect(new Set(held.map(({ port }) => port)).size).to.equal(COUNT)
    await Promise.all(held.map(({ release }) => release()))
  })

  it('is taken over by the HTTP server with its socket, without a moment in which it is free', async () => {
    const held = await holdFreePort(HOST)
    const server = await listen((_, response) => void response.end('served'), { host: HOST, ...held })
    expect(server.port).to.equal(held.port)
    expect(await (await fetch(`http://${HOST}:${held.port}`)).text()).to.equal('served')
    await server.close(0)
    await held.release()
    const next = await bound(held.port)
    next.close()
  })

  it('may be a wanted one, which is refused when it is in use', async () => {
    const server = await bound(0)
    const { port } = server.address() as AddressInfo
    expect(await rejectionOf(holdPort(port, HOST))).to.have.property('code', 'EADDRINUSE')
    server.close()
  })

  it('cannot be had on a host of another machine', async () => {
    expect(await rejectionOf(holdFreePort('192.0.2.1'))).to.have.property('code', 'EADDRNOTAVAIL')
  })
})
