import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'

/** The certificates that the connection strings name as files. */

export type Certificate = {
  /** The setting, and the parameter of its connection string. */
  readonly name: string
  /** RFC 3339, of the one in the file that expires first; null if the file has none that can be read. */
  readonly expires_at: string | null
}

const PARAMETERS = { eventStoreUrl: ['tlsCAFile', 'userCertFile'], databaseUrl: ['sslrootcert', 'sslcert'] } as const
const SETTINGS = { eventStoreUrl: 'EVENTSTORE_URL', databaseUrl: 'DATABASE_URL' } as const
type Urls = { readonly [U in keyof typeof PARAMETERS]?: string }

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

const firstExpiryIn = async (path: string): Promise<string | null> => {
  try {
    const times = ((await readFile(path, 'utf8')).match(PEM) ?? []).map(text => new X509Certificate(text).validToDate)
    return times.toSorted((a, b) => Number(a) - Number(b))[0]?.toISOString() ?? null
  } catch {
    return null
  }
}

/** The names of parameters are compared without regard to case, as the client of the event store does. */
const filesIn = (url: string): ReadonlyMap<string, string> =>
  new Map([...new URLSearchParams(url.split('?')[1])].map(([name, value]) => [name.toLowerCase(), value]))

export const readCertificates = async (urls: Urls): Promise<Certificate[]> => {
  const named = (['eventStoreUrl', 'databaseUrl'] as const).flatMap(key => {
    const files = filesIn(urls[key] ?? '')
    return PARAMETERS[key].flatMap(parameter => {
      const file = files.get(parameter.toLowerCase())
      return file === undefined ? [] : [{ name: `${SETTINGS[key]} ${parameter}`, file }]
    })
  })
  return Promise.all(named.map(async ({ name, file }) => ({ name, expires_at: await firstExpiryIn(file) })))
}
