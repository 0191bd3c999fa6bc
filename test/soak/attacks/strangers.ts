import { connect, type Socket } from 'node:net'
import type { Attack } from './attack.ts'

/** Connections without a credential that pipeline requests, each as fast as it may, and read no faster than answers come. */

const CONNECTIONS = 4
const PER_SECOND = 1_500
const EVERY_MS = 20
const REQUEST = 'GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n'
const BATCH = REQUEST.repeat((PER_SECOND * EVERY_MS) / 1_000)
const STATUS = /HTTP\/1\.1 (\d{3})/g

export const attack: Attack = {
  name: 'strangers who pipeline requests',
  run: ({ api }, signal) =>
    new Promise(resolve => {
      const { hostname, port } = new URL(api)
      const counts: Record<string, number> = { sent: 0 }
      const count = (outcome: string, by = 1): void => void (counts[outcome] = (counts[outcome] ?? 0) + by)
      const sockets = new Set<Socket>()
      const open = (): void => {
        const socket = connect(Number(port), hostname)
        sockets.add(socket)
        socket.on('error', () => undefined)
        socket.on('data', chunk => {
          for (const [, status = ''] of chunk.toString('latin1').matchAll(STATUS)) count(status)
        })
        socket.on('close', () => {
          sockets.delete(socket)
          if (signal.aborted) return
          count('closed')
          open()
        })
      }
      for (let n = 0; n < CONNECTIONS; n++) open()
      const timer = setInterval(() => {
        for (const socket of sockets)
          if (!socket.writableNeedDrain && socket.write(BATCH)) count('sent', PER_SECOND * (EVERY_MS / 1_000))
      }, EVERY_MS)
      signal.addEventListener('abort', () => {
        clearInterval(timer)
        for (const socket of sockets) socket.destroy()
        resolve(counts)
      })
    }),
}
