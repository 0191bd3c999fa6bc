import { X509Certificate } from 'node:crypto'
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

type Settings = { readonly [S in 'EVENTSTORE_URL' | 'DATABASE_URL' | 'KAFKA_SSL_CA_FILE']?: string | undefined }

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

const certificatesOf = (text: string): readonly X509Certificate[] =>
  (text.match(PEM) ?? []).map(certificate => new X509Certificate(certificate))

const fileOf = (name: string, path: string | null | undefined): readonly CertificateFile[] =>
  path ? [{ name, path }] : []

const STORE_PARAMETERS = ['tlsCAFile', 'userCertFile'] as const
const DATABASE_PARAMETERS = ['sslrootcert', 'sslcert'] as const

/** The files of certificates in these settings. */
export const certificateFilesOf = (settings: Settings): readonly CertificateFile[] => {
  const store = parseStoreAddress(settings.EVENTSTORE_URL ?? '')
  const database = URL.parse((settings.DATABASE_URL ?? '').replace('@/', '@missing.invalid/'))?.searchParams
  return [
    ...STORE_PARAMETERS.flatMap(name => fileOf(`EVENTSTORE_URL ${name}`, store?.setting(name.toLowerCase()))),
    ...DATABASE_PARAMETERS.flatMap(name => fileOf(`DATABASE_URL ${name}`, database?.get(name))),
    ...fileOf('KAFKA_SSL_CA_FILE', settings.KAFKA_SSL_CA_FILE),
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
