import { isIPv4 } from 'node:net'
import { StartupError } from '../lib/startupError.ts'

/** The insecure settings that production refuses, unless ALLOW_INSECURE names them. */

type Settings = {
  readonly KAFKA_BROKERS?: readonly string[] | undefined
  readonly KAFKA_SSL: boolean
  readonly DATABASE_URL?: string | undefined
  readonly EVENTSTORE_URL?: string | undefined
  readonly PUBLIC_URL?: string | undefined
}

type Insecurity = {
  /** Absent where only the broker can tell, once a subscription needs rights. */
  readonly isFound?: (settings: Settings) => boolean
  readonly sentence: string
  readonly remedy: string
}

/** Traffic to these does not leave the machine, for example to a proxy that adds TLS. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))

const kafkaIsPlaintext = ({ KAFKA_BROKERS: brokers = [], KAFKA_SSL: ssl }: Settings): boolean =>
  !ssl && !brokers.every(broker => isLoopback(broker.slice(0, broker.lastIndexOf(':'))))

/** In node-postgres these three verify the certificate; libpq's `require` does not. */
const ENCRYPTED = new Set(['verify-full', 'verify-ca', 'require'])

/** Of a parameter that is repeated, node-postgres takes the last. */
const postgresIsPlaintext = ({ DATABASE_URL: url }: Settings): boolean => {
  if (url === undefined || url.startsWith('/') || url.startsWith('socket:')) return false
  // `user@/database?host=/folder` has no host, which is no URL to the parser.
  const address = URL.parse(url.replace('@/', '@missing.invalid/'))
  if (address === null) return true
  const { sslmode = '', host, uselibpqcompat, sslrootcert } = Object.fromEntries(address.searchParams)
  const target = host || address.hostname
  if (target.startsWith('/') || /^%2f/i.test(target) || isLoopback(target)) return false
  if (uselibpqcompat === 'true' && sslmode === 'require' && !sslrootcert) return true
  return !ENCRYPTED.has(sslmode)
}

/** The client ignores case, `_` and `-`, takes the last of a repeated name, and has TLS by default. */
const eventStoreIsPlaintext = ({ EVENTSTORE_URL: url = '' }: Settings): boolean => {
  const [, discover, hosts = '', query = ''] =
    /^esdb(\+discover)?:\/\/(?:[^:]+:[^@]+@)?([^/?]*)\/?\??(.*)$/.exec(url.trim()) ?? []
  const parameters = query.split('&').map(parameter => parameter.split('=', 2))
  const tls = parameters.findLast(([name = '']) => name.trim().toLowerCase().replaceAll(/[_-]/g, '') === 'tls')
  if (tls?.[1]?.trim() !== 'false') return false
  return discover !== undefined || !hosts.split(',').every(host => isLoopback(host.trim().replace(/:\d+$/, '')))
}

const publicUrlIsHttp = ({ PUBLIC_URL: url }: Settings): boolean =>
  url !== undefined && url.startsWith('http:') && !isLoopback(new URL(url).hostname)

export const INSECURITIES = {
  'kafka-plaintext': {
    isFound: kafkaIsPlaintext,
    sentence: 'KAFKA_BROKERS is used without TLS, so that facts and any SASL PLAIN password cross the network readable',
    remedy: 'Set KAFKA_SSL=true',
  },
  'postgres-plaintext': {
    isFound: postgresIsPlaintext,
    sentence: 'DATABASE_URL does not require TLS with a verified certificate',
    remedy: 'Add sslmode=verify-full to it',
  },
  'eventstore-plaintext': {
    isFound: eventStoreIsPlaintext,
    sentence: 'EVENTSTORE_URL has tls=false, so that events and its password cross the network readable',
    remedy: 'Remove tls=false from it',
  },
  'public-url-http': {
    isFound: publicUrlIsHttp,
    sentence: 'PUBLIC_URL is plain http, so that callers would send their tokens readable',
    remedy: 'Use https',
  },
  'kafka-no-authorizer': {
    sentence:
      'Subscriptions with a principal are delivered even if the broker has no authorizer to protect their topics',
    remedy: 'Give the broker an authorizer',
  },
} as const satisfies Readonly<Record<string, Insecurity>>

export type InsecurityName = keyof typeof INSECURITIES
export const INSECURITY_NAMES = Object.keys(INSECURITIES) as InsecurityName[]

export const warningOf = (name: InsecurityName): string => `${INSECURITIES[name].sentence}: ALLOW_INSECURE has ${name}.`

/** The exceptions that these settings really use. Throws a StartupError that names everything that is not allowed. */
export const usedExceptions = (settings: Settings, allowed: readonly InsecurityName[]): readonly InsecurityName[] => {
  const exceptions = INSECURITY_NAMES.filter(name => {
    const { isFound }: Insecurity = INSECURITIES[name]
    return isFound === undefined ? allowed.includes(name) : isFound(settings)
  })
  const sentences = exceptions
    .filter(name => !allowed.includes(name))
    .map(name => {
      const { sentence, remedy } = INSECURITIES[name]
      return `${sentence}, and NODE_ENV is production. ${remedy}, or add ${name} to ALLOW_INSECURE.`
    })
  if (sentences.length > 0) throw new StartupError(sentences.join(' '))
  return exceptions
}
