import type { z } from 'zod'

/** The detail of a violation in words of the API. A schema with words of its own keeps them. */

type Issue = z.core.$ZodRawIssue

/** The error map of a parse. `root`: `?` for a query, whose members are parameters. */
export const wordsFor =
  (root: string) =>
  (issue: Issue): string | undefined => {
    if (issue.input === undefined && issue.code !== 'unrecognized_keys')
      return `This ${root === '?' ? 'parameter' : 'field'} is required.`
    return WORDS[issue.code]?.(issue)
  }

const TYPES: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a whole number',
  string: 'a string',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
}

/** The type of a JSON value; undefined for an object, which may also stand for a number that is not exact. */
const typeOf = (value: unknown): string | undefined => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'a number' : 'a fraction'
  return typeof value === 'object' ? undefined : (TYPES[typeof value] ?? undefined)
}

const wrongType = (expected: string, input: unknown): string => {
  const received = typeOf(input)
  return `Must be ${TYPES[expected] ?? expected}${received === undefined ? '' : `, not ${received}`}.`
}

const counted = (count: number | bigint, unit: string): string => `${count} ${unit}${Number(count) === 1 ? '' : 's'}`

const limited = (origin: string, how: 'least' | 'most', limit: number | bigint): string => {
  if (origin === 'string') return `Must have at ${how} ${counted(limit, 'character')}.`
  if (origin === 'array') return `Must have at ${how} ${counted(limit, 'item')}.`
  return `Must be at ${how} ${limit}.`
}

const ID_EXAMPLE = '01JB3N8Q6Z4T1V7W9XAC2E5GHK'

const malformed = (format: string, pattern: string | undefined): string | undefined => {
  if (format === 'datetime') return 'Must be an RFC 3339 timestamp, such as 2026-11-24T00:00:00Z.'
  if (format === 'date') return 'Must be a date, such as 2026-11-24.'
  if (format === 'uuid') return 'Must be a UUID.'
  if (format === 'regex') return `Must match the pattern ${pattern}.`
  const prefix = /^\^(\w+_)/.exec(pattern ?? '')?.[1]
  return format === 'template_literal' && prefix !== undefined
    ? `Must be an id, such as ${prefix}${ID_EXAMPLE}.`
    : undefined
}

const oneOf = (values: readonly unknown[]): string => {
  const quoted = values.map(value => JSON.stringify(value))
  return quoted.length === 1 ? `Must be ${quoted[0]}.` : `Must be one of ${quoted.join(', ')}.`
}

type Words = { readonly [C in Issue['code']]?: (issue: Extract<Issue, { code: C }>) => string | undefined }

const WORDS = {
  invalid_type: ({ expected, input }) => wrongType(expected, input),
  invalid_value: ({ values }) => oneOf(values),
  invalid_format: ({ format, pattern }) => malformed(format, pattern),
  too_small: ({ origin, minimum }) => limited(origin, 'least', minimum),
  too_big: ({ origin, maximum }) => limited(origin, 'most', maximum),
  invalid_key: ({ issues }) => `The name of this field is not permitted. ${issues[0]?.message ?? ''}`.trim(),
  invalid_union: ({ discriminator, options }) =>
    discriminator !== undefined && Array.isArray(options)
      ? oneOf(options)
      : 'Must have one of the forms that /openapi.json describes.',
} satisfies Words as Readonly<Partial<Record<string, (issue: Issue) => string | undefined>>>
