import { Metadata, status, type StatusObject } from '@grpc/grpc-js'
import type { Expected } from '../record.ts'
import type { Written } from '../writeRequest.ts'

/** A gRPC status with the real server's message and trailers; clients read the `exception` trailer. */
export type Failure = Pick<StatusObject, 'code' | 'details' | 'metadata'>

const failure = (code: status, details: string, trailers: Readonly<Record<string, string>> = {}): Failure => {
  const metadata = new Metadata()
  for (const [key, value] of Object.entries(trailers)) metadata.set(key, value)
  return { code, details, metadata }
}

/** Trailers are ASCII; stream names are not restricted. */
const ascii = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?')

export const invalidArgument = (details: string): Failure => failure(status.INVALID_ARGUMENT, details)

export const unavailable = (effect: 'none' | 'unknown'): Failure =>
  failure(
    status.UNAVAILABLE,
    effect === 'none'
      ? 'The database of the event store cannot be reached; nothing was written.'
      : 'The database of the event store was lost during the write; its outcome is unknown.',
  )

/** The real server's message for a position at which no event begins. */
export const readRefused = (): Failure => failure(status.UNKNOWN, 'Unexpected ReadAllResult: Error')
export const subscriptionRefused = (): Failure => failure(status.UNKNOWN, 'Exception was thrown by handler.')

export const streamDeleted = (stream: string): Failure =>
  failure(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': ascii(stream),
  })

/** Append, Delete and Tombstone answer these in the same way. */
export const notWritten = (
  stream: string,
  written: Exclude<Written, { readonly kind: 'written' | 'wrong_version' }>,
): Failure => {
  if (written.kind === 'deleted') return streamDeleted(stream)
  if (written.kind === 'unavailable') return unavailable(written.effect)
  return failure(status.DEADLINE_EXCEEDED, 'The deadline passed before the write began.')
}

const EXPECTED_NUMBERS = { no_stream: -1n, any: -2n, stream_exists: -4n } as const

export const expectedNumber = (expected: Expected): bigint =>
  typeof expected === 'bigint' ? expected : EXPECTED_NUMBERS[expected]

/** The refusal of a Delete or Tombstone call. Clients without trailers parse the text. */
export const wrongVersion = (stream: string, expected: Expected, actual: bigint): Failure => {
  const versions = `Expected version: ${expectedNumber(expected)}, Actual version: ${actual}`
  const text = `Delete failed due to WrongExpectedVersion. Stream: ${stream}, ${versions}`
  return failure(status.FAILED_PRECONDITION, text, {
    exception: 'wrong-expected-version',
    'stream-name': ascii(stream),
    'expected-version': expectedNumber(expected).toString(),
    'actual-version': actual.toString(),
  })
}

export const missingMetadata = (name: 'type' | 'content-type'): Failure =>
  failure(status.INVALID_ARGUMENT, `Required Metadata Property '${name}' is missing`, {
    exception: 'missing-required-metadata-property',
    'required-metadata-properties': 'type,content-type',
  })

export const tooLarge = (maxBytes: number): Failure =>
  failure(status.INVALID_ARGUMENT, `Maximum Append Size of ${maxBytes} Exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': maxBytes.toString(),
  })
