import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { readSettingFile } from './settingFile.ts'
import { StartupError } from '../lib/startupError.ts'
import { parseStoreAddress } from '../lib/storeAddress.ts'

/** The certificates that the settings name as files. */

export type Certificate = {
  /** The setting, and the parameter of its connection string. */
  readonly name: string
  /** RFC 3339, of the one in the file that expires first; null if the file has none that can be read. */
  readonly expires_at: string | null
}

export type CertificateFile = { readonly name: string; readonly path: string }

const KAFKA_FILES = ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE'] as const

type Settings = {
  readonly [S in 'EVENTSTORE_URL' | 'DATABASE_URL' | (typeof KAFKA_FILES)[number]]?: string | undefined
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

const certificatesOf = (text: string): readonly X509Certificate[] =>
  (text.match(PEM) ?? []).map(certificate => new X509Certificate(certificate))

const fileOf = (name: string, path: string | null | undefined): readonly CertificateFile[] =>
  path ? [{ name, path }] : []

const STORE_PARAMETERS = ['tlsCAFile', 'userCertFile'] as const
const DATABASE_PARAMETERS = ['sslrootcert', 'sslcert'] as const

export const certificateFilesOf = (settings: Settings): readonly CertificateFile[] => {
  const store = parseStoreAddress(settings.EVENTSTORE_URL ?? '')
  const database = URL.parse((settings.DATABASE_URL ?? '').replace('@/', '@missing.invalid/'))?.searchParams
  return [
    ...STORE_PARAMETERS.flatMap(name => fileOf(`EVENTSTORE_URL ${name}`, store?.setting(name.toLowerCase()))),
    ...DATABASE_PARAMETERS.flatMap(name => fileOf(`DATABASE_URL ${name}`, database?.get(name))),
    ...KAFKA_FILES.flatMap(name => fileOf(name, settings[name])),
  ]
}

/** The text of a file of certificates. Throws a StartupError if there is none in it. */
export const certificatesIn = (name: string, path: string): string => {
  const text = readSettingFile(name, path)
  try {
    if (certificatesOf(text).length > 0) return text
  } catch {
    // What looks like one cannot be read.
  }
  throw new StartupError(`${name}=${path} has no certificate that can be read: expected PEM.`)
}

const privateKeyOf = (text: string): KeyObject | undefined => {
  try {
    return createPrivateKey(text)
  } catch {
    return undefined
  }
}

/** The text of a file with the key of the first certificate in `cert`. Throws a StartupError if it is not. */
export const keyIn = (
  name: string,
  path: string,
  cert: { readonly setting: string; readonly text: string },
): string => {
  const text = readSettingFile(name, path)
  const key = privateKeyOf(text)
  if (key === undefined)
    throw new StartupError(`${name}=${path} has no key that can be read: expected PEM without a password.`)
  if (certificatesOf(cert.text)[0]?.checkPrivateKey(key) === true) return text
  throw new StartupError(`${name}=${path} is not the key of the certificate in ${cert.setting}.`)
}

const firstExpiryIn = async (path: string): Promise<string | null> => {
  try {
    const times = certificatesOf(await readFile(path, 'utf8')).map(({ validToDate }) => validToDate)
    return times.toSorted((a, b) => Number(a) - Number(b))[0]?.toISOString() ?? null
  } catch {
    return null
  }
}

export const readCertificates = (files: readonly CertificateFile[]): Promise<Certificate[]> =>
  Promise.all(files.map(async ({ name, path }) => ({ name, expires_at: await firstExpiryIn(path) })))
