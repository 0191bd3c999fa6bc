import type { Expected, ProposedEvent } from './record.ts'

export type WriteRequest = {
  readonly kind: 'append' | 'delete' | 'tombstone'
  readonly stream: string
  readonly expected: Expected
  readonly events: readonly ProposedEvent[]
  readonly bytes: number
  /** Not begun after this moment: milliseconds since 1970. */
  readonly deadlineMs: number
}

export type Written =
  | { readonly kind: 'written'; readonly revision: bigint; readonly position: bigint | undefined }
  | { readonly kind: 'wrong_version'; readonly actual: bigint }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unavailable'; readonly effect: 'none' | 'unknown' }
