import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartupError } from '../../src/lib/startupError.ts'

export type Users = Readonly<Record<string, string>>
export type Ports = {
  readonly plain: number
  readonly controller: number
  readonly sasl?: number | undefined
  readonly saslSsl?: number | undefined
  readonly ssl?: number | undefined
  /** The advertised port, if a proxy is in front of the plaintext listener. */
  readonly advertised?: number | undefined
}

/** A certificate and its key, in PEM. */
export type Certified = {
  readonly cert: string
  readonly key: string
  /** The certificate of the authority of the clients that the listener without SASL admits. */
  readonly clientAuthority: string
}

/** The super user of the broker; other users may do only what an ACL grants. */
const SUPER_USER = 'ledger'
const TEST_USERS = ['alice', 'bob'] as const

const PASSWORD_BYTES = 18
const USERS_FILE = 'users.json'
/** Characters that need no escaping in a properties file or in a quoted JAAS option. */
const USER_NAME = /^[A-Za-z0-9._-]{1,64}$/
const USER_PASSWORD = /^[!#-[\]-~]{1,128}$/

/** Parses `name:password`. Throws a StartupError for anything else. */
export const parseUser = (text: string): readonly [string, string] => {
  const colon = text.indexOf(':')
  const name = text.slice(0, colon)
  const password = text.slice(colon + 1)
  if (colon < 0 || !USER_NAME.test(name) || !USER_PASSWORD.test(password)) {
    throw new StartupError('--user takes name:password, both visible ASCII without quotes and backslashes.')
  }
  return [name, password]
}

const savedUsers = async (file: string): Promise<Users> => {
  const saved: unknown = JSON.parse(await readFile(file, 'utf8').catch(() => '{}'))
  const pairs = Object.entries(saved ?? {}).map(([name, password]) => parseUser(`${name}:${password}`))
  return Object.fromEntries(pairs)
}

/** The given users, those of earlier starts in this folder, and a new password for each default user without one. */
export const usersOf = async (dataDir: string, overrides: Users): Promise<Users> => {
  for (const [name, password] of Object.entries(overrides)) parseUser(`${name}:${password}`)
  const file = join(dataDir, USERS_FILE)
  const usual = [SUPER_USER, ...TEST_USERS].map(name => [name, randomBytes(PASSWORD_BYTES).toString('base64url')])
  const users = { ...Object.fromEntries(usual), ...(await savedUsers(file)), ...overrides }
  await writeFile(file, JSON.stringify(users), { mode: 0o600 })
  return users
}

const common = (ports: Ports): Record<string, string> => ({
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'controller.quorum.bootstrap.servers': `127.0.0.1:${ports.controller}`,
  'inter.broker.listener.name': 'PLAINTEXT',
  'listener.security.protocol.map':
    'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL',
  'auto.create.topics.enable': 'false',
  // A single node can hold only one replica.
  'default.replication.factor': '1',
  'min.insync.replicas': '1',
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  // Shortens the wait after a kill: the controller accepts the node again only when its former session has expired, 9 s
  // by default.
  'broker.heartbeat.interval.ms': '500',
  'broker.session.timeout.ms': '3000',
})

const withUsers = (users: Users): Record<string, string> => {
  const logins = Object.entries(users).map(([name, password]) => `user_${name}="${password}"`)
  const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required'
  return {
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': `User:ANONYMOUS;User:${SUPER_USER};User:CN=${SUPER_USER}`,
    'allow.everyone.if.no.acl.found': 'false',
    'sasl.enabled.mechanisms': 'PLAIN',
    'listener.name.sasl_plaintext.plain.sasl.jaas.config': `${login} ${logins.join(' ')};`,
    'listener.name.sasl_ssl.plain.sasl.jaas.config': `${login} ${logins.join(' ')};`,
  }
}

const escaped = (pem: string): string => pem.replaceAll('\n', String.raw`\n`)

const withCertificate = ({ cert, key, clientAuthority }: Certified): Record<string, string> => ({
  'ssl.keystore.type': 'PEM',
  'ssl.keystore.certificate.chain': escaped(cert),
  'ssl.keystore.key': escaped(key),
  'listener.name.ssl.ssl.client.auth': 'required',
  'listener.name.ssl.ssl.truststore.type': 'PEM',
  'listener.name.ssl.ssl.truststore.certificates': escaped(clientAuthority),
})

type Security = { readonly users?: Users | undefined; readonly certified?: Certified | undefined }

/** `logDir` is relative, since a comma in a path separates two. The plaintext listener is the super user's. */
export const serverProperties = (ports: Ports, logDir: string, { users, certified }: Security = {}): string => {
  const clients = [`PLAINTEXT://127.0.0.1:${ports.plain}`]
  if (ports.sasl !== undefined) clients.push(`SASL_PLAINTEXT://127.0.0.1:${ports.sasl}`)
  if (ports.saslSsl !== undefined) clients.push(`SASL_SSL://127.0.0.1:${ports.saslSsl}`)
  if (ports.ssl !== undefined) clients.push(`SSL://127.0.0.1:${ports.ssl}`)
  const advertised = [`PLAINTEXT://127.0.0.1:${ports.advertised ?? ports.plain}`, ...clients.slice(1)]
  const settings = {
    ...common(ports),
    listeners: [...clients, `CONTROLLER://127.0.0.1:${ports.controller}`].join(','),
    'advertised.listeners': advertised.join(','),
    'log.dirs': logDir,
    ...(users && withUsers(users)),
    ...(certified && withCertificate(certified)),
  }
  return `${Object.entries(settings)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')}\n`
}
