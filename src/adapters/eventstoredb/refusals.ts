import { connect } from 'node:tls'
import { causeOf } from './errors.ts'

/** Why an event store does not work with this service as it is configured. An operator can mend each of them. */
export type Refused = 'credentials' | 'rights' | 'certificate'

const SENTENCES: Readonly<Record<Refused, string>> = {
  credentials: 'The event store refuses the user name or the password in EVENTSTORE_URL.',
  rights: 'The event store denies the user in EVENTSTORE_URL a right that this service needs.',
  certificate: 'The certificate of the event store is not trusted.',
}

/** The store answered, and will have nothing done. Nothing was. */
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
/** Words of OpenSSL and Node, which are all that is left of a failed handshake. */
const CERTIFICATE = /certificate|altnames|CERT_|unable to (?:verify|get)/i
const NOT_DISCOVERED = 'Failed to discover'
const HANDSHAKE_MAX_MS = 1_000
const DEFAULT_PORT = 2113

/** Undefined for anything else. */
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

/** The nodes that the connection string names, if they are to be reached by TLS with a certificate that is checked. */
const nodesIn = (connectionString: string): readonly Node[] => {
  const [, hosts = '', settings = ''] =
    /^esdb(?:\+discover)?:\/\/(?:[^@/]*@)?([^/?]*)\/?\??(.*)$/.exec(connectionString) ?? []
  if (/(?:^|&)(?:tls|tlsVerifyCert)=false/i.test(settings)) return []
  return hosts.split(',').map(named => {
    const { hostname, port } = new URL(`https://${named}`)
    return { host: hostname, port: port === '' ? DEFAULT_PORT : Number(port) }
  })
}

/** The error of a handshake with this node; undefined when there was none in time. */
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

/** A client that discovers its cluster keeps to itself why no node can be reached; so each is asked once for the reason. */
export const refusalBehind = async (connectionString: string, error: unknown): Promise<StoreRefused | undefined> => {
  if (!(error instanceof Error && error.message.startsWith(NOT_DISCOVERED))) return refusalOf(error)
  const failures = await Promise.all(nodesIn(connectionString).map(handshake))
  return failures.map(refusalOf).find(refused => refused?.refused === 'certificate')
}
