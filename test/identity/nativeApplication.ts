import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type NativeApplication = {
  /** On a port that the operating system chose (RFC 8252, section 7.3). */
  readonly redirectUri: string
  /** The addresses that a browser was sent to. */
  readonly received: URL[]
  readonly close: () => Promise<void>
}

/** A native application that listens on a loopback port for the redirect of the browser. */
export const startNativeApplication = async (path = '/callback'): Promise<NativeApplication> => {
  const received: URL[] = []
  const server = createServer((request, response) => {
    received.push(new URL(request.url ?? '', redirectUri))
    response.end('You may close this window.')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  return {
    redirectUri,
    received,
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
