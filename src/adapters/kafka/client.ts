import { isIP, connect as openSocket, type Socket } from 'node:net'
import { connect as openTls, type ConnectionOptions } from 'node:tls'
import {
  type Admin,
  type Consumer,
  type ISocketFactory,
  Kafka,
  type KafkaConfig,
  type logCreator,
  logLevel,
  type Producer,
  type SASLOptions,
} from 'kafkajs'
import type { Logger } from '../../ports.ts'
import { partitionByKey } from './partitioner.ts'

/** Errors of the client are logged as warnings only, because each is either retried or thrown. */
export type KafkaLogger = Pick<Logger, 'warn'>

export type KafkaSasl = {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  readonly username: string
  readonly password: string
}

export type FactBusOptions = {
  /** `host:port` of some brokers; the client discovers the others. */
  readonly brokers: readonly string[]
  readonly ssl?: boolean | ConnectionOptions | undefined
  readonly sasl?: KafkaSasl | undefined
  readonly clientId: string
  readonly logger: KafkaLogger
  /** The timeout of one request; 10 s by default. */
  readonly requestTimeoutMs?: number
  /** The limit for all retries of one publish(); 10 s by default. */
  readonly publishDeadlineMs?: number
}

export type KafkaClient = {
  producer(): Producer
  admin(): Admin
  consumer(groupId: string): Consumer
  /** Ends every connection at once, also a half-open one, for which kafkajs would wait without limit. */
  drop(): void
}

const CONNECT_TIMEOUT_MS = 3_000
/** The broker's wait for its replicas: shorter than the client's wait for the broker. */
export const ACK_TIMEOUT_MS = 8_000
const REQUEST_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 30_000
const RETRY_MIN_MS = 50
const RETRY_MAX_MS = 500
const ADMIN_RETRIES = 5
/** The broker's wait for messages of a consumer that has read all, and what it sends of a partition at once. */
const MAX_WAIT_MS = 250
const READ_MAX_BYTES = 131_072

const logTo =
  (logger: KafkaLogger): logCreator =>
  () =>
  ({ namespace, log: { message, timestamp: _timestamp, logger: _logger, ...details } }) =>
    logger.warn({ ...details, kafka: namespace }, message)

/** The connections of one client. Once `dropped`, no new one is opened, since kafkajs would continue reconnecting. */
type Connections = { readonly sockets: Set<Socket>; dropped: boolean }

const socketsInto =
  (connections: Connections): ISocketFactory =>
  ({ host, port, ssl, onConnect }) => {
    if (connections.dropped) throw new Error('This client was given up.')
    const name = isIP(host) === 0 ? { servername: host } : {}
    const socket = ssl ? openTls({ host, port, ...name, ...ssl }, onConnect) : openSocket({ host, port }, onConnect)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.setNoDelay(true)
    connections.sockets.add(socket)
    socket.once('close', () => connections.sockets.delete(socket))
    return socket
  }

/** The login in the types of kafkajs, which have one variant for each mechanism. */
const loginOf = ({ mechanism, username, password }: KafkaSasl): SASLOptions => {
  if (mechanism === 'plain') return { mechanism, username, password }
  if (mechanism === 'scram-sha-256') return { mechanism, username, password }
  return { mechanism, username, password }
}

const configOf = (options: FactBusOptions, logger: KafkaLogger, connections: Connections): KafkaConfig => ({
  clientId: options.clientId,
  brokers: [...options.brokers],
  ...(options.ssl === undefined ? {} : { ssl: options.ssl }),
  ...(options.sasl === undefined ? {} : { sasl: loginOf(options.sasl) }),
  connectionTimeout: CONNECT_TIMEOUT_MS,
  authenticationTimeout: CONNECT_TIMEOUT_MS,
  requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
  // One attempt for each of the configured brokers.
  retry: { retries: options.brokers.length, initialRetryTime: RETRY_MIN_MS, maxRetryTime: RETRY_MAX_MS },
  logLevel: logLevel.WARN,
  logCreator: logTo(logger),
  socketFactory: socketsInto(connections),
})

/** A new client, not yet connected. */
export const openClient = (options: FactBusOptions): KafkaClient => {
  const connections: Connections = { sockets: new Set(), dropped: false }
  // Messages of kafkajs about connections that were dropped on purpose are not logged.
  const unlessDropped: KafkaLogger = {
    warn: (details, message) => void (connections.dropped || options.logger.warn(details, message)),
  }
  const kafka = new Kafka(configOf(options, unlessDropped, connections))
  const opened: (Producer | Admin | Consumer)[] = []
  const keep = <T extends Producer | Admin | Consumer>(client: T): T => {
    opened.push(client)
    return client
  }
  return {
    producer: () =>
      keep(
        kafka.producer({
          createPartitioner: partitionByKey,
          allowAutoTopicCreation: false,
          idempotent: false,
          retry: { retries: 0 },
        }),
      ),
    admin: () => keep(kafka.admin({ retry: { retries: ADMIN_RETRIES, initialRetryTime: RETRY_MIN_MS } })),
    consumer: groupId =>
      keep(kafka.consumer({ groupId, maxWaitTimeInMs: MAX_WAIT_MS, maxBytesPerPartition: READ_MAX_BYTES })),
    drop() {
      connections.dropped = true
      for (const socket of connections.sockets) socket.destroy(new Error('The connection was given up.'))
      for (const client of opened) client.disconnect().catch(() => undefined)
    },
  }
}

const codesIn = (error: unknown): readonly string[] => {
  if (!(error instanceof Error)) return []
  const own = 'type' in error && typeof error.type === 'string' ? [error.type] : []
  const several = 'errors' in error && Array.isArray(error.errors) ? error.errors : []
  return [...own, ...several.flatMap(codesIn), ...codesIn(error.cause)]
}

const isNotPermitted = (code: string): boolean => code.endsWith('_AUTHORIZATION_FAILED')

/** The broker's error code in kafkajs's errors; of several that of a missing right, which no repetition helps. */
export const protocolErrorOf = (error: unknown): string | undefined => {
  const codes = codesIn(error)
  return codes.find(isNotPermitted) ?? codes[0]
}

const isLoginRefusal = (error: unknown): boolean => {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at.name.startsWith('KafkaJSSASLAuthenticationError')) return true
  }
  return protocolErrorOf(error) === 'SASL_AUTHENTICATION_FAILED'
}

/** One sentence if the broker refuses this service; undefined if it does not answer. Never contains the password. */
export const refusalOf = (error: unknown, { sasl }: FactBusOptions): string | undefined => {
  if (isLoginRefusal(error)) {
    return `Kafka refused the login of user ${sasl?.username ?? '(none)'} by ${sasl?.mechanism ?? 'no mechanism'}.`
  }
  const type = protocolErrorOf(error)
  if (type === undefined || !isNotPermitted(type)) return undefined
  return `Kafka does not permit this to ${sasl?.username ?? 'an anonymous client'}: ${type}.`
}
