import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'

/**
 * Content codings of responses (RFC 9110 §8.4, §12.5.3). Three kinds are never compressed: responses to commands, whose
 * length would reveal a secret (BREACH); those with a strong entity tag, which would differ by coding; and streams.
 */

const CODINGS = ['br', 'gzip'] as const
type Coding = (typeof CODINGS)[number]

/** A smaller response fits into one packet uncompressed. */
const CODED_MIN_BYTES = 1_024
/** At this quality Brotli is smaller than gzip and as fast. */
const BROTLI_QUALITY = 4
const METHODS: readonly (string | undefined)[] = ['GET', 'HEAD']

const compressors: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Buffer>>> = {
  br: bytes => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: bytes => promisify(gzip)(bytes),
}

// Matches a trimmed element: two adjacent runs of white space in the pattern would backtrack in every combination.
const ELEMENT = /^([^;, \t]+)(?:[ \t]*;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i

/** The quality of each coding that the caller names; malformed elements are ignored. */
const qualitiesOf = (header: string): ReadonlyMap<string, number> =>
  new Map(
    header.split(',').flatMap(element => {
      const [match, name = '', quality = '1'] = ELEMENT.exec(element.trim()) ?? []
      return match === undefined ? [] : [[name.toLowerCase().replace(/^x-/, ''), Number(quality)] as const]
    }),
  )

/** The coding with the highest quality; Brotli if both are equal. Undefined for no coding. */
export const codingOf = (header: string | undefined): Coding | undefined => {
  const qualities = qualitiesOf(header ?? '')
  const qualityOf = (coding: Coding): number => qualities.get(coding) ?? qualities.get('*') ?? 0
  const [best] = CODINGS.toSorted((a, b) => qualityOf(b) - qualityOf(a))
  if (best === undefined || qualityOf(best) === 0) return undefined
  return qualityOf(best) >= (qualities.get('identity') ?? 0) ? best : undefined
}

type Headers = Readonly<Record<string, string>>

const isFit = ({ method }: IncomingMessage, headers: Headers): boolean =>
  METHODS.includes(method) && headers['ETag'] === undefined && !/no-transform/.test(headers['Cache-Control'] ?? '')

type Cached = { readonly text: string; readonly coded: Promise<Buffer> }
const CACHED_MAX = 64

/** Public documents are the same for all callers, and are compressed once. */
const cached = new LRUCache<string, Cached>({ max: CACHED_MAX })

const codedOnce = (key: string, text: string, code: () => Promise<Buffer>): Promise<Buffer> => {
  const entry = cached.get(key)
  if (entry?.text === text) return entry.coded
  const coded = code()
  cached.set(key, { text, coded })
  return coded
}

/** The bytes of the body in the coding that this caller accepts, and the headers that name it. */
export const coded = async (
  req: IncomingMessage,
  text: string,
  headers: Headers,
): Promise<{ bytes: Buffer; headers: Headers }> => {
  const bytes = Buffer.from(text)
  if (!isFit(req, headers)) return { bytes, headers }
  const varied = { ...headers, Vary: [headers['Vary'], 'Accept-Encoding'].filter(Boolean).join(', ') }
  const coding = bytes.length < CODED_MIN_BYTES ? undefined : codingOf(req.headers['accept-encoding'])
  if (coding === undefined) return { bytes, headers: varied }
  const code = (): Promise<Buffer> => compressors[coding](bytes)
  const isPublic = (headers['Cache-Control'] ?? '').startsWith('public')
  const smaller = await (isPublic ? codedOnce(`${coding} ${headers['API-Version']} ${req.url}`, text, code) : code())
  return { bytes: smaller, headers: { ...varied, 'Content-Encoding': coding } }
}
