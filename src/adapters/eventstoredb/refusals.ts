import { connect } from 'node:tls'
import { connectionParts } from './connectionString.ts'
import { causeOf } from './errors.ts'

/** Reasons for which an event store refuses this service. Each needs a change by an operator. */
export type Refused = 'credentials' | 'rights' | 'certificate'

const SENTENCES: Readonly<Record<Refused, string>> = {
  credentials: 'The event store refuses the user name or the password in EVENTSTORE_URL.',
  rights: 'The event store denies the user in EVENTSTORE_URL a right that this service needs.',
  certificate: 'The certificate of the event store is not trusted.',
}

/** The store refused the request, and did nothing. */
export class StoreRefused extends Error {
  readonly refused: Refused

  constructor(refused: Refused, words: string) {
    super(`${SENTENCES[refused]} It says: ${words}`)
    this.name = 'StoreRefused'
    this.refused = refused
  }
}

const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16
/** Error messages of OpenSSL and Node, the only trace of a failed handshake. */
const CERTIFICATE = /certificate|altnames|CERT_|unable to (?:verify|get)/i
const NOT_DISCOVERED = 'Failed to discover'
const HANDSHAKE_MAX_MS = 1_000
const DEFAULT_PORT = 2113

/** Undefined for other errors. */
export const refusalOf = (error: unknown): StoreRefused | undefined => {
  if (error instanceof StoreRefused) return error
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? error.code : undefined
  if (code === UNAUTHENTICATED) return new StoreRefused('credentials', error.message)
  const isDenied = code === PERMISSION_DENIED || causeOf(error)?.type === 'access-denied'
  if (isDenied) return new StoreRefused('rights', error.message)
  return CERTIFICATE.test(error.message) ? new StoreRefused('certificate', error.message) : undefined
}

type Node = { readonly host: string; readonly port: number }

/** The nodes in the connection string, if it asks for TLS with verified certificates. */
const nodesIn = (connectionString: string): readonly Node[] => {
  const { hosts, setting } = connectionParts(connectionString)
  if (setting('tls') === 'false' || setting('tlsverifycert') === 'false') return []
  return hosts.map(named => {
    const { hostname, port } = new URL(`https://${named}`)
    return { host: hostname, port: port === '' ? DEFAULT_PORT : Number(port) }
  })
}

/** The error of a TLS handshake with this node; undefined if there was none in time. */
const handshake = ({ host, port }: Node): Promise<Error | undefined> =>
  new Promise(resolve => {
    const socket = connect({ host, port, servername: host, ALPNProtocols: ['h2'] })
    const end = (error?: Error): void => {
      socket.destroy()
      resolve(error)
    }
    socket.setTimeout(HANDSHAKE_MAX_MS, () => end())
    socket.once('secureConnect', () => end())
    socket.once('error', end)
  })

/** Discovery hides why no node can be reached, so each is connected to once for its certificate. */
export const refusalBehind = async (connectionString: string, error: unknown): Promise<StoreRefused | undefined> => {
  if (!(error instanceof Error && error.message.startsWith(NOT_DISCOVERED))) return refusalOf(error)
  const failures = await Promise.all(nodesIn(connectionString).map(handshake))
  return failures.map(refusalOf).find(refused => refused?.refused === 'certificate')
}
