import { satisfiesIfRange } from './entityTags.ts'

/** The headers Range and If-Range (RFC 9110 §14 and §13.1.5). */

/** From `first` to the byte before `end`. */
export type ByteRange = { readonly first: bigint; readonly end: bigint }

type RangeHeaders = { readonly range: string | undefined; readonly ifRange: string | undefined }
type Representation = { readonly etag: string; readonly length: bigint }

const BYTES = /^bytes=(.*)$/i
/** White space at both ends. The lookbehind keeps a long run of it linear. */
const AROUND = /^[ \t]+|(?<![ \t])[ \t]+$/g
const SPEC = /^(\d+)-(\d*)$|^-(\d+)$/

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b)

const rangeOfSpec = (spec: string, length: bigint): ByteRange | 'not satisfiable' | undefined => {
  const [match, from, to, suffix] = SPEC.exec(spec) ?? []
  if (match === undefined) return undefined
  if (suffix !== undefined)
    return BigInt(suffix) === 0n ? 'not satisfiable' : { first: length - smaller(BigInt(suffix), length), end: length }
  const first = BigInt(from ?? 0)
  if (to && BigInt(to) < first) return undefined
  if (first >= length) return 'not satisfiable'
  return { first, end: to ? smaller(BigInt(to) + 1n, length) : length }
}

/**
 * The requested range; undefined for the whole representation: without Range, when If-Range names another version, and
 * for all that RFC 9110 §14.2 lets a server ignore: other units, malformed, empty and several ranges.
 */
export const rangeOf = (
  { range, ifRange }: RangeHeaders,
  { etag, length }: Representation,
): ByteRange | 'not satisfiable' | undefined => {
  const set = BYTES.exec(range ?? '')?.[1]
  if (set === undefined || length === 0n || !satisfiesIfRange(ifRange, etag)) return undefined
  // An element of a list may be empty (RFC 9110 §5.6.1.2).
  const specs = set
    .split(',')
    .map(spec => spec.replaceAll(AROUND, ''))
    .filter(spec => spec !== '')
  return specs.length === 1 ? rangeOfSpec(specs[0] ?? '', length) : undefined
}
