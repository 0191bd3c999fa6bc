import { type Expected, type ProposedEvent, sizeOf } from '../record.ts'
import type { WriteRequest } from '../writeRequest.ts'
import { type Failure, invalidArgument, tooLarge } from './status.ts'

/** Validation of an append while its messages arrive. */

export const APPEND_BYTES_MAX = 1024 * 1024
/** A name is part of an index entry of Postgres, whose limit is 2,700 bytes. */
const NAME_BYTES_MAX = 2000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export type Target = { readonly stream: string; readonly expected: Expected; readonly deadlineMs: number }
type Proposed = Omit<ProposedEvent, 'id' | 'type'> & { readonly id?: string; readonly type?: string }

/** An append while its messages arrive. */
export type Proposal = {
  add(event: Proposed): void
  /** The request, or the reason for its refusal. */
  finish(): { readonly request: WriteRequest } | { readonly refused: Refused }
}
export type Refused = { readonly reason: 'too_large' | 'invalid'; readonly failure: Failure }

export const openProposal = (target: Target): Proposal => {
  const events: ProposedEvent[] = []
  let bytes = 0
  let refused: Refused | undefined = invalid(nameProblem(target.stream))
  return {
    add: event => {
      refused ??= invalid(eventProblem(event))
      if (refused !== undefined) return
      const { id = '', type = '' } = event
      const complete = { ...event, id, type }
      bytes += sizeOf(complete)
      if (bytes > APPEND_BYTES_MAX) refused = { reason: 'too_large', failure: tooLarge(APPEND_BYTES_MAX) }
      else events.push(complete)
    },
    finish: () => (refused === undefined ? { request: { kind: 'append', ...target, events, bytes } } : { refused }),
  }
}

const invalid = (problem: string | undefined): Refused | undefined =>
  problem === undefined ? undefined : { reason: 'invalid', failure: invalidArgument(problem) }

/** Postgres stores every character but NUL, and one refused event would fail a whole batch. */
export const nameProblem = (stream: string): string | undefined => {
  if (stream === '') return 'The stream has no name.'
  if (Buffer.byteLength(stream) > NAME_BYTES_MAX) return `The name of the stream exceeds ${NAME_BYTES_MAX} bytes.`
  return stream.includes('\0') ? 'The name of the stream holds a NUL.' : undefined
}

const eventProblem = ({ id, type }: Proposed): string | undefined => {
  if (id === undefined || !UUID.test(id)) return 'An event has no id that is a UUID.'
  if (type === undefined || type === '') return 'An event has no type.'
  return type.includes('\0') ? 'The type of an event holds a NUL.' : undefined
}
