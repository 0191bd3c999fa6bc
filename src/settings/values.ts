import { isIP } from 'node:net'
import { z } from 'zod'
import { approvalKey } from '../identity/approvalPolicy.ts'
import {
  type ConcurrencyLimitSettings,
  DEFAULT_CONCURRENCY_LIMITS,
  DEFAULT_RATE_LIMITS,
  rateLimitsWith,
} from './limits.ts'
import type { RateLimit } from '../ports.ts'
import { certificatesIn, keyIn } from './certificates.ts'
import { StartupError } from '../lib/startupError.ts'
import { parseStoreAddress, type StoreAddress } from '../lib/storeAddress.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../lib/time.ts'

const DURATION_UNITS_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

export const duration = z
  .string()
  .regex(/^\d{1,6}[smhd]$/, 'expected a number with a unit, such as 30d, 12h, 15m or 90s')
  .transform(text => Number(text.slice(0, -1)) * (DURATION_UNITS_MS[text.slice(-1)] ?? 0))

/** `shortest`: the least time, in the form of the setting. */
export const durationFrom = (leastMs: number, shortest: string) =>
  duration.refine(timeMs => timeMs >= leastMs, `expected at least ${shortest}`)

export const oneOf = <const T extends readonly string[]>(words: T) =>
  z.enum(words, { error: `expected ${words.filter(word => word !== '').join(', ')}`.replace(/, (?=[^,]*$)/, ' or ') })

export const list = z.string().transform(text =>
  text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== ''),
)

export const flag = oneOf(['true', 'false', '1', '0', '']).transform(text => text === 'true' || text === '1')

const APPROVAL_AMOUNT = /^([a-z0-9][a-z0-9-]{0,62})=([A-Z]{3}):(\d{1,12})$/

/** `acme=USD:100000,acme=EUR:90000`: the amounts of the approval policy, in minor units. */
export const approvalAmounts = list.transform((rules, context) => {
  const amounts = new Map<string, bigint>()
  for (const rule of rules) {
    const [, tenant = '', currency = '', amount] = APPROVAL_AMOUNT.exec(rule) ?? []
    const key = approvalKey(tenant, currency)
    if (amount === undefined)
      context.addIssue({
        code: 'custom',
        message: `${rule} does not have the form tenant=CURRENCY:amount, such as acme=USD:100000`,
      })
    else if (amounts.has(key)) context.addIssue({ code: 'custom', message: `${tenant} has two amounts in ${currency}` })
    else amounts.set(key, BigInt(amount))
  }
  return amounts
})

const RATE = /^([0-9]{1,9})\/([1-9][0-9]{0,5})$/
const NUMBER = /^[0-9]{1,9}$/

/** `name=value,name=value` with these names; `read` returns undefined for a value of another form. */
const namedValues = <T>(names: readonly string[], form: string, read: (text: string) => T | undefined) =>
  list.transform((rules, context) => {
    const values: Record<string, T> = {}
    for (const rule of rules) {
      const [name = '', ...rest] = rule.split('=')
      const value = names.includes(name) ? read(rest.join('=')) : undefined
      if (value === undefined)
        context.addIssue({
          code: 'custom',
          message: `${rule} does not have the form ${form}. A policy is one of ${names.join(', ')}`,
        })
      else if (name in values) context.addIssue({ code: 'custom', message: `${name} is named twice` })
      else values[name] = value
    }
    return values
  })

const readRate = (text: string): RateLimit | undefined => {
  const [, requests, windowSeconds] = RATE.exec(text) ?? []
  return requests === undefined ? undefined : { requests: Number(requests), windowSeconds: Number(windowSeconds) }
}

/** `payments=600/60,tenant_payments=6000/60`: requests per seconds. Policies that are not named keep their default. */
export const rateLimits = namedValues(
  Object.keys(DEFAULT_RATE_LIMITS),
  'policy=requests/seconds, such as default=600/60',
  readRate,
)
  .transform(rateLimitsWith)
  .default(DEFAULT_RATE_LIMITS)

const readNumber = (text: string): number | undefined => (NUMBER.test(text) ? Number(text) : undefined)

/** `streams=20,tenant_streams=200`: how many at once. Policies that are not named keep their default. */
export const concurrencyLimits = namedValues(
  Object.keys(DEFAULT_CONCURRENCY_LIMITS),
  'policy=number, such as streams=20',
  readNumber,
)
  .transform((overrides): ConcurrencyLimitSettings => ({ ...DEFAULT_CONCURRENCY_LIMITS, ...overrides }))
  .default(DEFAULT_CONCURRENCY_LIMITS)

const PREFIX_MAX = { 4: 32, 6: 128 } as const
/** The largest private networks. A larger block would let callers choose their address themselves. */
const PREFIX_MIN = { 4: 8, 6: 7 } as const

/** `10.0.0.7`, `10.0.0.0/8`, `2001:db8::/32`. */
export const addressBlock = z.string().superRefine((text, context) => {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  if ((version !== 4 && version !== 6) || Number(prefix ?? 0) > PREFIX_MAX[version])
    context.addIssue({ code: 'custom', message: `${text} is neither an IP address nor a CIDR block` })
  else if (prefix !== undefined && Number(prefix) < PREFIX_MIN[version])
    context.addIssue({
      code: 'custom',
      message: `${text} is larger than a private network; expected /${PREFIX_MIN[version]} or smaller`,
    })
})

/** A shorter pepper could be guessed from the hashes. */
const PEPPER_CHARS_MIN = 32

export const pepper = z.string().min(PEPPER_CHARS_MIN, `expected at least ${PEPPER_CHARS_MIN} characters`)

const BYTE_UNITS: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }

/** `5GiB`. */
export const byteSize = z
  .string()
  .regex(
    /^[1-9]\d{0,3}(KiB|MiB|GiB|TiB)$/,
    'expected a number of at most four digits with a unit, such as 512MiB or 5GiB',
  )
  .transform(text => Number(text.slice(0, -3)) * (BYTE_UNITS[text.slice(-3)] ?? 0))

export const count = z
  .string()
  .regex(/^\d{1,4}$/, 'expected a whole number from 0 to 9999')
  .transform(Number)

const WORKLOAD_CLAIM = /^([^=\s]{1,100})=(\S{1,255})$/

/** `gty=client-credentials`: the name of a claim and its value. */
export const workloadClaim = z
  .string()
  .regex(WORKLOAD_CLAIM, 'expected a claim and its value, such as gty=client-credentials')
  .transform(text => ({ name: text.slice(0, text.indexOf('=')), value: text.slice(text.indexOf('=') + 1) }))

/** Paths begin at the root, so the address ends with the port. */
export const publicUrl = z
  .url({ protocol: /^https?$/, error: 'expected an http or https URL, such as https://ledger.example' })
  .refine(
    text => `${new URL(text).origin}/` === new URL(text).href,
    'expected a URL without user, path, query and fragment, such as https://ledger.example',
  )
  .transform(text => new URL(text).origin)

/** More connections than one server of Postgres usually has. */
const PROCESSES_MAX = 32

const PORT_MAX = 65_535

/** 0 is any free port. */
export const portNumber = z
  .string()
  .refine(text => /^\d{1,5}$/.test(text) && Number(text) <= PORT_MAX, `expected a port number from 0 to ${PORT_MAX}`)
  .transform(Number)

const isPort = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= PORT_MAX

export const broker = z
  .string()
  .regex(/^[^\s:]+:\d+$/, 'expected host:port, or a list of them separated by commas')
  .refine(text => isPort(text.slice(text.lastIndexOf(':') + 1)), `expected a port from 1 to ${PORT_MAX}`)

/** The parameters that the client of the event store knows, in small letters. */
const STORE_PARAMETERS: ReadonlySet<string> = new Set([
  ...['tls', 'tlsverifycert', 'tlscafile', 'usercertfile', 'userkeyfile', 'nodepreference', 'connectionname'],
  ...['maxdiscoverattempts', 'discoveryinterval', 'gossiptimeout', 'keepaliveinterval', 'keepalivetimeout'],
  ...['defaultdeadline', 'throwonappendfailure'],
])

/** What the client would ignore; it would also print the whole address, with the password, to complain. */
const flawOf = ({ hosts, parameters, setting }: StoreAddress): string | undefined => {
  if (!hosts.every(host => isPort(/:(\d+)$/.exec(host)?.[1] ?? '1'))) return `expected a port from 1 to ${PORT_MAX}`
  const unknown = parameters.find(([name]) => !STORE_PARAMETERS.has(name))
  if (unknown !== undefined) return `it has no parameter ${unknown[0]}`
  if (!['true', 'false'].includes(setting('tls') ?? 'true')) return 'expected tls=true or tls=false'
  if (setting('tlsverifycert') === 'false')
    return 'certificates are always verified, so remove tlsVerifyCert=false and name the file of your authority in tlsCAFile'
  return undefined
}

/** EventStoreDB has the scheme `esdb`, KurrentDB `kurrentdb` and `kdb` too. */
export const eventStoreUrl = z.string().superRefine((text, context) => {
  const address = parseStoreAddress(text)
  const message = address === undefined ? 'expected a URL such as esdb://host:2113' : flawOf(address)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})

/** The forms that node-postgres has: it takes any other scheme for its own, and a text without one for a database. */
export const databaseUrl = z
  .string()
  .refine(
    text =>
      /^(\/|socket:)/.test(text) || (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text.replace('@/', '@host/'))),
    'expected a URL such as postgres://user:password@host:5432/database',
  )

export const issuerUrl = z.url({
  protocol: /^https?$/,
  error: 'expected an http or https URL, such as https://issuer.example',
})

export const portOrOff = z.union([z.literal('off'), portNumber], {
  error: `expected a port number from 0 to ${PORT_MAX}, or off`,
})

export const processCount = z
  .string()
  .refine(
    text => /^\d{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= PROCESSES_MAX,
    `expected a number from 1 to ${PROCESSES_MAX}`,
  )
  .transform(Number)

/** The API processes' part of a payment's CPU time, with event store and Postgres on the machine and without. */
const API_SHARE = { embedded: 0.4, apart: 0.7 } as const
/** Below this number event store and Postgres use the cores that one process of the service leaves. */
const CORES_MIN = { embedded: 3, apart: 2 } as const

/** Each API process needs five connections to Postgres at least, of which a server has a hundred by default. */
const DEFAULT_APIS_MAX = 10

/** One process for the feeds, and one for each core that the API can use. */
export const defaultProcesses = (
  cores: number,
  { stores, hasFeeds }: { readonly stores: 'embedded' | 'apart'; readonly hasFeeds: boolean },
): number => {
  if (cores < CORES_MIN[stores]) return 1
  const apis = Math.min(DEFAULT_APIS_MAX, Math.max(1, Math.round(cores * API_SHARE[stores])))
  return hasFeeds ? apis + 1 : apis
}

export type KafkaConfig = {
  readonly brokers: readonly string[]
  /** `ca`: the certificates that are trusted instead of those of Node; `cert` and `key`: those that the service shows. */
  readonly ssl: boolean | { readonly ca?: string; readonly cert?: string; readonly key?: string }
  readonly sasl?: {
    readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    readonly username: string
    readonly password: string
  }
}

type KafkaSettings = {
  readonly KAFKA_BROKERS?: readonly string[] | undefined
  readonly KAFKA_SSL: boolean
  readonly KAFKA_SSL_CA_FILE?: string | undefined
  readonly KAFKA_SSL_CERT_FILE?: string | undefined
  readonly KAFKA_SSL_KEY_FILE?: string | undefined
  readonly KAFKA_SASL_MECHANISM?: 'plain' | 'scram-sha-256' | 'scram-sha-512' | undefined
  readonly KAFKA_SASL_USERNAME?: string | undefined
  readonly KAFKA_SASL_PASSWORD?: string | undefined
}

const KAFKA_FILES = ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE', 'KAFKA_SSL_KEY_FILE'] as const

const kafkaTlsOf = (env: KafkaSettings): KafkaConfig['ssl'] => {
  const { KAFKA_SSL_CA_FILE: caFile, KAFKA_SSL_CERT_FILE: certFile, KAFKA_SSL_KEY_FILE: keyFile } = env
  const files = KAFKA_FILES.filter(name => env[name] !== undefined)
  if (files.length > 0 && !env.KAFKA_SSL)
    throw new StartupError(`${files.join(' and ')} need KAFKA_SSL=true: without TLS there is no effect.`)
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new StartupError('KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE go together: set both.')
  if (files.length === 0) return env.KAFKA_SSL
  const ca = caFile === undefined ? {} : { ca: certificatesIn('KAFKA_SSL_CA_FILE', caFile) }
  if (certFile === undefined || keyFile === undefined) return ca
  const cert = certificatesIn('KAFKA_SSL_CERT_FILE', certFile)
  return { ...ca, cert, key: keyIn('KAFKA_SSL_KEY_FILE', keyFile, { setting: 'KAFKA_SSL_CERT_FILE', text: cert }) }
}

export const kafkaOf = (env: KafkaSettings): KafkaConfig | undefined => {
  const { KAFKA_BROKERS: brokers, KAFKA_SSL } = env
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = env
  const hasSasl = mechanism !== undefined || username !== undefined || password !== undefined
  const ssl = kafkaTlsOf(env)
  if (brokers === undefined && (KAFKA_SSL || hasSasl))
    throw new StartupError('KAFKA_SSL and KAFKA_SASL_* need KAFKA_BROKERS: without it nothing is published.')
  if (brokers === undefined) return undefined
  if (!hasSasl) return { brokers, ssl }
  if (mechanism === undefined || username === undefined || password === undefined)
    throw new StartupError(
      'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD go together: set all three.',
    )
  return { brokers, ssl, sasl: { mechanism, username, password } }
}
