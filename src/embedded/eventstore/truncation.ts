import { SOFT_DELETED_BEFORE, type StoredRecord, ticksOf } from './record.ts'

/** Which events of a stream its metadata hides from readers of that stream. `$all` goes on showing them. */
export type Truncation = {
  /** Everything below this revision is hidden. */
  readonly before: bigint
  readonly maxCount?: bigint
  readonly maxAgeMs?: number
}

export const NO_TRUNCATION: Truncation = { before: 0n }
/** Of a metadata stream, only the newest event counts. */
export const METASTREAM_TRUNCATION: Truncation = { before: 0n, maxCount: 1n }

const MS_PER_SECOND = 1000

type StreamMetadata = { readonly $tb?: unknown; readonly $maxCount?: unknown; readonly $maxAge?: unknown }

/** `$tb` of a soft-deleted stream does not fit into a double, so integers are read from the source text. */
const exactIntegers = (_key: string, value: unknown, context: { source?: string }): unknown =>
  typeof value === 'number' && /^-?\d+$/.test(context.source ?? '') ? BigInt(context.source ?? '') : value

const parse = (json: string): StreamMetadata | undefined => {
  try {
    const value: unknown = (JSON.parse as (text: string, reviver: typeof exactIntegers) => unknown)(json, exactIntegers)
    return value !== null && typeof value === 'object' ? value : undefined
  } catch {
    return undefined
  }
}

/** Reads the content of a `$metadata` event; what it does not understand hides nothing. */
export const truncationOf = (metadataJson: string): Truncation => {
  const { $tb, $maxCount, $maxAge } = parse(metadataJson) ?? {}
  return {
    before: typeof $tb === 'bigint' && $tb > 0n ? $tb : 0n,
    ...(typeof $maxCount === 'bigint' && $maxCount > 0n && { maxCount: $maxCount }),
    ...(typeof $maxAge === 'bigint' && $maxAge > 0n && { maxAgeMs: Number($maxAge) * MS_PER_SECOND }),
  }
}

export const isSoftDeleted = (truncation: Truncation): boolean => truncation.before === SOFT_DELETED_BEFORE

/** The first revision that a reader of the stream may see. */
export const firstVisible = (truncation: Truncation, head: bigint): bigint => {
  const byCount = truncation.maxCount === undefined ? 0n : head - truncation.maxCount + 1n
  return byCount > truncation.before ? byCount : truncation.before
}

export const isExpired = (record: Pick<StoredRecord, 'createdTicks'>, truncation: Truncation, nowMs: number): boolean =>
  truncation.maxAgeMs !== undefined && record.createdTicks < ticksOf(nowMs - truncation.maxAgeMs)

/** A reader of a stream with this head can see the event. */
export const isVisible = (
  { truncation, head }: { readonly truncation: Truncation; readonly head: bigint },
  event: Pick<StoredRecord, 'revision' | 'createdTicks'>,
): boolean =>
  !isSoftDeleted(truncation) &&
  event.revision >= firstVisible(truncation, head) &&
  !isExpired(event, truncation, Date.now())

/** The metadata of a stream that comes back to life: as it was, but showing what is written from `before` on; undefined for what is no JSON. */
export const undeleted = (metadataJson: string, before: bigint): string | undefined => {
  const value = parse(metadataJson)
  return (
    value &&
    JSON.stringify({ ...value, $tb: before }, (_, one: unknown) => (typeof one === 'bigint' ? Number(one) : one))
  )
}

export const softDeletedMetadata = (): string => `{"$tb":${SOFT_DELETED_BEFORE}}`
