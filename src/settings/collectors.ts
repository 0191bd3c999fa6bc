import { type CertificateFile, certificatesIn } from './certificates.ts'

/** The collectors of OpenTelemetry: its own variables, which src/telemetry.ts leaves to its SDK. */

export type Collector = {
  /** The variable of its address. */
  readonly setting: string
  readonly url: string
  /** The certificates that are trusted instead of those of Node. */
  readonly ca?: string
}

const SIGNALS = ['', 'TRACES_', 'METRICS_', 'LOGS_'] as const
const PREFIX = 'OTEL_EXPORTER_OTLP_'

/** Addresses of gRPC may have no scheme; those are left to the SDK. */
const isHttp = (url: string): boolean => /^https?:$/.test(URL.parse(url)?.protocol ?? '')

type Signal = (typeof SIGNALS)[number]

const caFileOf = (env: NodeJS.ProcessEnv, signal: Signal): readonly CertificateFile[] => {
  const name = [`${PREFIX}${signal}CERTIFICATE`, `${PREFIX}CERTIFICATE`].find(setting => env[setting])
  return name === undefined ? [] : [{ name, path: env[name] ?? '' }]
}

const signalsIn = (env: NodeJS.ProcessEnv): readonly Signal[] =>
  env['OTEL_SDK_DISABLED'] === 'true' ? [] : SIGNALS.filter(signal => isHttp(env[`${PREFIX}${signal}ENDPOINT`] ?? ''))

export const collectorFilesIn = (env: NodeJS.ProcessEnv): readonly CertificateFile[] => {
  const files = signalsIn(env).flatMap(signal => caFileOf(env, signal))
  return files.filter(({ name }, index) => files.findIndex(file => file.name === name) === index)
}

/** Throws a StartupError for a file without certificates, in place of which the SDK would silently trust those of Node. */
export const collectorsIn = (env: NodeJS.ProcessEnv): readonly Collector[] =>
  signalsIn(env).map(signal => {
    const setting = `${PREFIX}${signal}ENDPOINT`
    const [file] = caFileOf(env, signal)
    return { setting, url: env[setting] ?? '', ...(file && { ca: certificatesIn(file.name, file.path) }) }
  })
