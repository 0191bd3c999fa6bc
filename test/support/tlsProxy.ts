import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createServer } from 'node:tls'
import type { Certified } from './selfSigned.ts'

/** A server with this certificate that decrypts, and forwards to a port of this machine. */
export type TlsProxy = { readonly port: number; readonly close: () => void }

export const openTlsProxy = async (certified: Certified, target: number): Promise<TlsProxy> => {
  const sockets = new Set<Socket>()
  const server = createServer({ ...certified, ALPNProtocols: ['h2'] }, client => {
    const inner = connect({ host: '127.0.0.1', port: target })
    for (const socket of [client, inner]) {
      sockets.add(socket.setNoDelay(true))
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.pipe(inner).pipe(client)
    client.once('close', () => inner.destroy())
    inner.once('close', () => client.destroy())
  })
  server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
