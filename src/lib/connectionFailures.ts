import { systemCode } from './startupError.ts'

/** Why another server cannot be used, and what an operator does about it: by the errors of its client. */

export type ConnectionFailure = {
  /** A certificate, a refused login, no connection; `other`: the words of the client. */
  readonly kind: 'certificate' | 'login' | 'unreachable' | 'other'
  /** Without a full stop. */
  readonly cause: string
  /** A sentence. */
  readonly remedy: string
}

export type PartSettings = {
  readonly address: string
  readonly login: string
  /** Where the file with the certificate of the authority is set. */
  readonly authority: string
  /** Where the certificate is set that the service shows; absent where it cannot show one. */
  readonly identity?: string
}

export const PART_SETTINGS = {
  'event store': {
    address: 'EVENTSTORE_URL',
    login: 'the user and the password in EVENTSTORE_URL',
    authority: 'tlsCAFile in EVENTSTORE_URL',
    identity: 'userCertFile and userKeyFile in EVENTSTORE_URL',
  },
  database: {
    address: 'DATABASE_URL',
    login: 'the user and the password in DATABASE_URL',
    authority: 'sslrootcert in DATABASE_URL',
    identity: 'sslcert and sslkey in DATABASE_URL',
  },
  'fact bus': {
    address: 'KAFKA_BROKERS',
    login: 'KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
    authority: 'KAFKA_SSL_CA_FILE',
    identity: 'KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE',
  },
  issuer: { address: 'OIDC_ISSUER', login: 'OIDC_ISSUER', authority: 'NODE_EXTRA_CA_CERTS' },
  telemetry: {
    address: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    login: 'OTEL_EXPORTER_OTLP_HEADERS',
    authority: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    identity: 'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY',
  },
} as const satisfies Readonly<Record<string, PartSettings>>

type Rule = {
  readonly kind: ConnectionFailure['kind']
  /** Of the code and the message of an error: some clients keep only the message. */
  readonly pattern: RegExp
  readonly cause: (message: string) => string
  readonly remedy: (settings: PartSettings) => string
}

/** `Host: a. is not in the cert's altnames: DNS:b, DNS:c` and `IP: 10.0.0.1 is not in the cert's list: 10.0.0.2`. */
const OTHER_NAME =
  /(?:Host: (\S+?)\.? is not in the cert's altnames|IP: (\S+) is not in the cert's list): ?((?:(?:DNS|IP Address):)?[^\s,)]+(?:, (?:DNS|IP Address):[^\s,)]+)*)?/

const otherNames = (message: string): string => {
  const [, host, address, names = ''] = OTHER_NAME.exec(message) ?? []
  const others = names.replaceAll(/DNS:|IP Address:/g, '').replace(/\.$/, '')
  return `its certificate is ${others === '' ? '' : `for ${others}, `}not for ${host ?? address ?? 'this host name'}`
}

const startIt = ({ address }: PartSettings): string => `Start it, or correct ${address}.`

const certificate = (pattern: RegExp, cause: string | Rule['cause'], remedy: Rule['remedy']): Rule => ({
  kind: 'certificate',
  pattern,
  cause: typeof cause === 'string' ? () => cause : cause,
  remedy,
})

const login = (pattern: RegExp, remedy: Rule['remedy']): Rule => ({
  kind: 'login',
  pattern,
  cause: message => message,
  remedy,
})

const unreachable = (code: string, cause: string): Rule => ({
  kind: 'unreachable',
  pattern: new RegExp(`\\b${code}\\b`),
  cause: () => `${cause} (${code})`,
  remedy: startIt,
})

const useTls = ({ address }: PartSettings): string => `Correct the port in ${address}, or turn on TLS at the server.`

const RULES: readonly Rule[] = [
  certificate(
    /ALTNAME_INVALID|certificate's altnames/,
    otherNames,
    ({ address }) => `Use a name of the certificate in ${address}, or have one issued for this name.`,
  ),
  certificate(
    /CERT_HAS_EXPIRED|certificate has expired/,
    'its certificate has expired',
    () => 'Renew it at the server; if it is still valid, correct the clock of this machine.',
  ),
  certificate(
    /CERT_NOT_YET_VALID|certificate is not yet valid/,
    'its certificate is not valid yet',
    () => 'Correct the clock of this machine, or wait.',
  ),
  certificate(
    /UNABLE_TO_(?:VERIFY|GET_ISSUER)|SELF_SIGNED|CERT_SIGNATURE_FAILURE|self-signed certificate|unable to (?:verify|get (?:local )?issuer)|certificate signature failure/,
    'its certificate was issued by an authority that is not trusted here',
    ({ authority }) => `Set ${authority} to the file with the certificate of that authority.`,
  ),
  certificate(
    /wrong version number|packet length too long|does not support SSL connections/,
    'it does not speak TLS at this port',
    useTls,
  ),
  certificate(
    /before secure TLS connection was established/,
    'it closed the connection during the TLS handshake',
    useTls,
  ),
  certificate(
    // The alerts of TLS with which a server refuses its client.
    /alert (?:certificate (?:required|unknown|expired|revoked)|(?:bad|unsupported) certificate|unknown ca)/,
    'it refuses a client without a certificate that it trusts',
    ({ address, identity }) =>
      identity === undefined
        ? `Permit clients without a certificate at the server, or correct ${address}.`
        : `Set ${identity} to a certificate of an authority that the server trusts, and its key.`,
  ),
  login(/\b28P01\b|refuses the user name or the password|refused the login/, settings => `Correct ${settings.login}.`),
  login(/denies the user in EVENTSTORE_URL/, () => 'Permit it to that user: scripts/ledger/OPERATING.md says how.'),
  login(/\b28000\b/, ({ address }) => `Permit the user at the server (pg_hba.conf), or correct ${address}.`),
  login(/\b3D000\b/, ({ address }) => `Create it, or correct ${address}.`),
  unreachable('ECONNREFUSED', 'the connection was refused'),
  unreachable('ENOTFOUND', 'there is no such host'),
  unreachable('EAI_AGAIN', 'the name of the host cannot be resolved'),
  unreachable('EHOSTUNREACH', 'the host is unreachable'),
  unreachable('ENETUNREACH', 'the network is unreachable'),
]

/** The error, its causes, and of an error for several addresses the first. The innermost is last. */
const chainOf = (error: unknown): readonly Error[] => {
  if (!(error instanceof Error)) return []
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause
  return [error, ...chainOf(inner)]
}

/** The client of the event store writes `14 UNAVAILABLE: … (caused by: connect ECONNREFUSED …)`. */
const GRPC_STATUS = /^\d+ [A-Z_]+: /
const GRPC_CAUSE = /^\d+ [A-Z_]+: .*\(caused by: ([^)]+)\)/

/** The innermost message, which is more specific than the errors that wrap it. */
export const reasonOf = (error: unknown): string => {
  const message = chainOf(error).at(-1)?.message ?? String(error)
  return GRPC_CAUSE.exec(message)?.[1] ?? message.replace(GRPC_STATUS, '')
}

export const connectionFailureOf = (error: unknown, settings: PartSettings): ConnectionFailure => {
  for (const one of chainOf(error).toReversed())
    for (const { kind, pattern, cause, remedy } of RULES)
      if (pattern.test(`${systemCode(one) ?? ''} ${one.message}`))
        return { kind, cause: cause(one.message), remedy: remedy(settings) }
  return { kind: 'other', cause: reasonOf(error), remedy: startIt(settings) }
}
