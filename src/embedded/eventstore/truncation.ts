import { SOFT_DELETED_BEFORE, type StoredRecord, ticksOf } from './record.ts'

/** The events of a stream that its metadata hides from readers of the stream. `$all` still returns them. */
export type Truncation = {
  /** Revisions below this one are hidden. */
  readonly before: bigint
  readonly maxCount?: bigint
  readonly maxAgeMs?: number
}

export const NO_TRUNCATION: Truncation = { before: 0n }
/** Only the newest event of a metadata stream is visible. */
export const METASTREAM_TRUNCATION: Truncation = { before: 0n, maxCount: 1n }

const MS_PER_SECOND = 1000

/** Stream metadata of EventStoreDB: `$tb` (truncate before) is a revision, `$maxAge` is in seconds. */
type StreamMetadata = { readonly $tb?: unknown; readonly $maxCount?: unknown; readonly $maxAge?: unknown }

/** `$tb` of a soft-deleted stream does not fit into a double, so integers are parsed from the source text. */
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

/** Parses the content of a `$metadata` event; unknown members hide nothing. */
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

/** Whether a reader of a stream with this head can see the event. */
export const isVisible = (
  { truncation, head }: { readonly truncation: Truncation; readonly head: bigint },
  event: Pick<StoredRecord, 'revision' | 'createdTicks'>,
): boolean =>
  !isSoftDeleted(truncation) &&
  event.revision >= firstVisible(truncation, head) &&
  !isExpired(event, truncation, Date.now())

/** The metadata of a soft-deleted stream whose events from `before` on become visible; undefined if it is not JSON. */
export const restoredMetadata = (metadataJson: string, before: bigint): string | undefined => {
  const value = parse(metadataJson)
  return (
    value &&
    JSON.stringify({ ...value, $tb: before }, (_, one: unknown) => (typeof one === 'bigint' ? Number(one) : one))
  )
}

export const softDeletedMetadata = (): string => `{"$tb":${SOFT_DELETED_BEFORE}}`
