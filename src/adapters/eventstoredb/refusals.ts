import { placeIn, probe } from '../../lib/probe.ts'
import { storeAddressOf } from '../../lib/storeAddress.ts'
import { causeOf } from './errors.ts'
import { encryptionOf } from './session.ts'

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

/** Discovery hides why no node can be reached, so each is connected to once for its certificate. */
export const refusalBehind = async (connectionString: string, error: unknown): Promise<StoreRefused | undefined> => {
  if (!(error instanceof Error && error.message.startsWith(NOT_DISCOVERED))) return refusalOf(error)
  const address = storeAddressOf(connectionString)
  const encryption = encryptionOf(address)
  if (encryption === undefined) return undefined
  const options = { encryption: { ...encryption, ALPNProtocols: ['h2'] }, timeoutMs: HANDSHAKE_MAX_MS }
  const places = address.hosts.flatMap(host => placeIn(host, DEFAULT_PORT))
  const failures = await Promise.all(places.map(place => probe(place, options)))
  return failures.map(refusalOf).find(refused => refused?.refused === 'certificate')
}
