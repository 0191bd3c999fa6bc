import { createHash } from 'node:crypto'
import { Problem } from '../problems/problemCatalogue.ts'

/** Entity tags, If-Match, If-None-Match and If-Range (RFC 9110 §8.8.3 and §13.1). */

const tagOf = (version: string, apiVersion: string, hasErased: boolean): string =>
  `"${version}${hasErased ? '-erased' : ''}.${apiVersion}"`

/** A strong entity tag by stream revision and API version. Erasure and progress (`tick`) change it without an event. */
export const etagOf = (revision: bigint, apiVersion: string, { tick = 0, hasErased = false } = {}): string =>
  tagOf(tick === 0 ? `${revision}` : `${revision}-${tick}`, apiVersion, hasErased)

const HASH_CHARS = 22

/** The tag of a row of a read model that later events may correct: it differs with every value of the row. */
export const etagOfRow = (row: Readonly<Record<string, unknown>>, apiVersion: string, hasErased = false): string => {
  const text = JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, HASH_CHARS)
  return tagOf(hash, apiVersion, hasErased)
}

/** One tag, and a list of tags, for the contract. The parser below also accepts empty list elements. */
export const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/
export const ENTITY_TAGS =
  /^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$/

type Tag = { readonly weak: boolean; readonly opaque: string }
// An element of a list may be empty (RFC 9110 §5.6.1.2); its white space is spaces and tabs only.
const ELEMENT = /[ \t]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|$)/y
const STAR = /^[ \t]*\*[ \t]*$/

const malformed = (): Problem =>
  new Problem('precondition_invalid', {
    detail: 'Send the ETag exactly as its header had it, including the double quotes; separate several by commas.',
  })

const tagsOf = (header: string): '*' | readonly Tag[] => {
  if (STAR.test(header)) return '*'
  const tags: Tag[] = []
  for (ELEMENT.lastIndex = 0; ELEMENT.lastIndex < header.length; ) {
    const match = ELEMENT.exec(header)
    if (!match) throw malformed()
    if (match[2] !== undefined) tags.push({ weak: match[1] !== undefined, opaque: match[2] })
  }
  if (tags.length === 0) throw malformed()
  return tags
}

/** The If-Match test: strong comparison. A resource that does not exist (`undefined`) never matches. */
export const ifMatch = (header: string): ((etag: string | undefined) => boolean) => {
  const tags = tagsOf(header)
  return etag => etag !== undefined && (tags === '*' || tags.some(tag => !tag.weak && tag.opaque === etag))
}

/** Whether If-None-Match names this representation: weak comparison. */
export const ifNoneMatch = (header: string): ((etag: string | undefined) => boolean) => {
  const tags = tagsOf(header)
  return etag => etag !== undefined && (tags === '*' || tags.some(tag => tag.opaque === etag))
}

export const isNotModified = (header: string | undefined, etag: string): boolean =>
  header !== undefined && ifNoneMatch(header)(etag)

/** The If-Range test: strong comparison with one tag. A date never matches, since no response has Last-Modified. */
export const satisfiesIfRange = (header: string | undefined, etag: string): boolean =>
  header === undefined || header === etag
