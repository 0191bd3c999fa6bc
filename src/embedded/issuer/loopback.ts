import type { IncomingMessage } from 'node:http'

/** What is on this machine: addresses, and requests that come from it. */

export const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether the URI is plain http on this machine, such as that of an application on a user's device. */
export const isLoopback = (uri: string): boolean => {
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && LOOPBACK_HOSTS.has(hostname)
}

const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/

/** From this machine's address, to a name of it: a page whose name resolves to this machine sends another Host. */
export const isFromThisMachine = ({ headers }: Pick<IncomingMessage, 'headers'>, address: string): boolean => {
  const { host = '' } = headers
  return (
    LOOPBACK_ADDRESS.test(address) &&
    URL.canParse(`http://${host}`) &&
    LOOPBACK_HOSTS.has(new URL(`http://${host}`).hostname)
  )
}
