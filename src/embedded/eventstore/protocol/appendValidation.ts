import { type Expected, type ProposedEvent, sizeOf } from '../record.ts'
import type { WriteRequest } from '../writeRequest.ts'
import type { Proposed } from './messages.ts'
import { type Failure, invalidArgument, missingMetadata, tooLarge } from './status.ts'

/** The limit of the data of an append. The real server counts neither metadata nor types, up to version 24.10. */
export const APPEND_BYTES_MAX = 1024 * 1024
/** The limit of an append with its metadata and types. The real server has it for one event. */
const APPEND_TOTAL_BYTES_MAX = 16 * 1024 * 1024
/** A name is part of an index entry of Postgres, whose limit is 2,700 bytes. */
const NAME_BYTES_MAX = 2000
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export type Target = { readonly stream: string; readonly expected: Expected; readonly deadlineMs: number }

/** An append while its messages arrive. */
export type Proposal = {
  /** Returns the reason if the append is refused already, so the client need not send the rest. */
  add(event: Proposed): Refused | undefined
  finish(): { readonly request: WriteRequest } | { readonly refused: Refused }
}
export type Refused = { readonly reason: 'too_large' | 'invalid'; readonly failure: Failure }

export const openProposal = (target: Target): Proposal => {
  const events: ProposedEvent[] = []
  let bytes = 0
  let dataBytes = 0
  const problem = nameProblem(target.stream)
  let refused = problem === undefined ? undefined : invalid(invalidArgument(problem))
  return {
    add: event => {
      refused ??= eventProblem(event)
      if (refused !== undefined) return refused
      const { id = '', type = '', isJson = false } = event
      const complete = { ...event, id, type, isJson }
      bytes += sizeOf(complete)
      dataBytes += event.data.length
      if (dataBytes > APPEND_BYTES_MAX || bytes > APPEND_TOTAL_BYTES_MAX)
        refused = { reason: 'too_large', failure: tooLarge(APPEND_BYTES_MAX) }
      else events.push(complete)
      return refused
    },
    finish: () => (refused === undefined ? { request: { kind: 'append', ...target, events, bytes } } : { refused }),
  }
}

const invalid = (failure: Failure): Refused => ({ reason: 'invalid', failure })

/** Postgres stores every character but NUL, and one refused event would fail a whole batch. */
export const nameProblem = (stream: string): string | undefined => {
  if (stream === '') return 'The stream has no name.'
  if (Buffer.byteLength(stream) > NAME_BYTES_MAX) return `The name of the stream exceeds ${NAME_BYTES_MAX} bytes.`
  return stream.includes('\0') ? 'The name of the stream holds a NUL.' : undefined
}

const eventProblem = ({ id, type, isJson }: Proposed): Refused | undefined => {
  if (id === undefined || !UUID.test(id)) return invalid(invalidArgument('An event has no id that is a UUID.'))
  if (type === undefined) return invalid(missingMetadata('type'))
  if (isJson === undefined) return invalid(missingMetadata('content-type'))
  if (type === '') return invalid(invalidArgument('An event has no type.'))
  return type.includes('\0') ? invalid(invalidArgument('The type of an event holds a NUL.')) : undefined
}
