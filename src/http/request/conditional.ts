import { Problem } from '../response/problemCatalogue.ts'

/** Entity tags and the two conditional headers, as RFC 9110 §8.8.3 and §13.1 have them. */

/** Strong, one per stream revision and API version, opaque to clients. */
export const etagOf = (revision: bigint, apiVersion: string): string => `"${revision}.${apiVersion}"`

/**
 * The tag of a resource that shows how far it has come, which moves without an event: what is shown is decided by the
 * revision and the tick together, so that the tag of both is as strong as any other.
 */
export const etagAt = (revision: bigint, tick: number, apiVersion: string): string =>
  tick === 0 ? etagOf(revision, apiVersion) : `"${revision}-${tick}.${apiVersion}"`

/** One tag, and a list of them, as clients write them; what is taken of a list is a little more (below). */
export const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/
export const ENTITY_TAGS =
  /^(?:\*|(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")*)$/

type Tag = { readonly weak: boolean; readonly opaque: string }
// An element of a list may be empty (RFC 9110 §5.6.1.2); spaces and tabs are its white space, and nothing else is.
const ELEMENT = /[ \t]*(?:(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|$)/y
const STAR = /^[ \t]*\*[ \t]*$/

const tagsOf = (header: string): '*' | readonly Tag[] => {
  if (STAR.test(header)) return '*'
  const tags: Tag[] = []
  for (ELEMENT.lastIndex = 0; ELEMENT.lastIndex < header.length; ) {
    const found = ELEMENT.exec(header)
    if (!found) throw new Problem('precondition_invalid', { detail: 'Not a list of entity tags.' })
    if (found[2] !== undefined) tags.push({ weak: found[1] !== undefined, opaque: found[2] })
  }
  if (tags.length === 0) throw new Problem('precondition_invalid', { detail: 'An empty list of entity tags.' })
  return tags
}

/** The If-Match test: strong comparison. `undefined` for a resource that does not exist never matches. */
export const ifMatch = (header: string): ((etag: string | undefined) => boolean) => {
  const tags = tagsOf(header)
  return etag => etag !== undefined && (tags === '*' || tags.some(tag => !tag.weak && tag.opaque === etag))
}

/** The If-None-Match test, turned round: whether the caller has this representation already. Weak comparison. */
export const ifNoneMatch = (header: string): ((etag: string | undefined) => boolean) => {
  const tags = tagsOf(header)
  return etag => etag !== undefined && (tags === '*' || tags.some(tag => tag.opaque === etag))
}

export const isKnown = (header: string | undefined, etag: string): boolean =>
  header !== undefined && ifNoneMatch(header)(etag)

/** The If-Range test: strong comparison with one tag. A date is never the same, since no answer has Last-Modified. */
export const satisfiesIfRange = (header: string | undefined, etag: string): boolean =>
  header === undefined || header === etag
