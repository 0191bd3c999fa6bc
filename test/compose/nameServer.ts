import { createSocket } from 'node:dgram'
import { once } from 'node:events'

const PORT = 53
/** An address of the loopback interface for each process, since resolvers know no other port. */
const ADDRESS = `127.53.${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`
const HEADER_BYTES = 12
const NO_SUCH_NAME = 3
const TTL_S = 1
/** An answer about the name in the question: type A, class IN, its time, four bytes: 127.0.0.1. */
const LOOPBACK = Buffer.from([0xc0, HEADER_BYTES, 0, 1, 0, 1, 0, 0, 0, TTL_S, 0, 4, 127, 0, 0, 1])

const nameIn = (query: Buffer): string => {
  const labels: string[] = []
  for (let at = HEADER_BYTES; query[at] !== 0; at += 1 + (query[at] ?? 0))
    labels.push(query.toString('latin1', at + 1, at + 1 + (query[at] ?? 0)))
  return labels.join('.')
}

/** A DNS server for these names of containers, all of which are on this machine. Needs root. */
export const startNameServer = async (names: ReadonlySet<string>) => {
  let queries = 0
  const socket = createSocket('udp4', (query, { port, address }) => {
    queries += 1
    const name = nameIn(query)
    const question = query.subarray(HEADER_BYTES, HEADER_BYTES + name.length + 2 + 4)
    const isFound = names.has(name)
    const header = Buffer.from([0x81, isFound ? 0x80 : 0x80 | NO_SUCH_NAME, 0, 1, 0, isFound ? 1 : 0, 0, 0, 0, 0])
    const answer = Buffer.concat([query.subarray(0, 2), header, question, isFound ? LOOPBACK : Buffer.of()])
    socket.send(answer, port, address)
  })
  socket.bind(PORT, ADDRESS)
  await once(socket, 'listening')
  return { queries: () => queries, resolver: `nameserver ${ADDRESS}\n`, close: () => void socket.close() }
}
