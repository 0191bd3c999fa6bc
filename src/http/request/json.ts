import { Problem, type Violation } from '../problems/problemCatalogue.ts'
import { pointerOf } from './violations.ts'

/** A strict JSON parser for request bodies: limits, duplicate members, inexact numbers and invalid text. */

/** Limits of a body, which `json_limits_exceeded` reports. */
export const DEPTH_MAX = 16
export const MEMBERS_MAX = 1_000

const NAME_CHARS_SHOWN = 100

/** A number that is no exact double, which JSON.parse would round to an integer; an object matches no schema. */
export class InexactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y
// Everything up to the closing quote; JSON.parse decodes the escapes.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y
const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
])

type Reader = {
  readonly text: string
  at: number
  members: number
  /** The names and indexes of the path to the current value. */
  readonly path: (string | number)[]
  readonly violations: Violation[]
}

const invalid = (reader: Reader, expected: string): Problem =>
  new Problem('invalid_json', {
    detail:
      reader.text.trim() === ''
        ? 'The body is empty; a JSON value is required.'
        : `Expected ${expected} at character ${reader.at}, counted from 0.`,
  })

const limits = (detail: string): Problem => new Problem('json_limits_exceeded', { detail })

const take = (reader: Reader, pattern: RegExp): string | undefined => {
  pattern.lastIndex = reader.at
  const match = pattern.exec(reader.text)?.[0]
  if (match !== undefined) reader.at += match.length
  return match
}

const skipSpace = (reader: Reader): void => void take(reader, SPACE)

const takeChar = (reader: Reader, char: string): boolean => {
  skipSpace(reader)
  if (reader.text[reader.at] !== char) return false
  reader.at++
  return true
}

const readString = (reader: Reader): string => {
  const quoted = take(reader, STRING)
  if (quoted === undefined) throw invalid(reader, 'a string')
  const text = parsePrimitive(reader, quoted)
  const violation = invalidTextViolation(text)
  if (violation) reader.violations.push({ pointer: pointerOf(reader.path, ''), ...violation })
  return text
}

/** The violation of a text that is valid in JSON, but that Postgres or UTF-8 cannot represent. */
const invalidTextViolation = (text: string): Omit<Violation, 'pointer'> | undefined => {
  if (text.includes('\u0000'))
    return { code: 'nul_character', detail: 'A string must not contain the character U+0000.' }
  if (!text.isWellFormed())
    return { code: 'lone_surrogate', detail: 'A string must not contain an unpaired surrogate.' }
  return undefined
}

const parsePrimitive = (reader: Reader, quoted: string): string => {
  try {
    return JSON.parse(quoted) as string
  } catch {
    throw invalid(reader, 'a valid escape before this string ends')
  }
}

/** The digits and the exponent of a literal, without leading or trailing zeros. */
const decimalOf = (literal: string): string => {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(literal) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  // The lookbehind keeps a long run of zeros linear.
  const significant = digits.replace(/(?<!0)0+$/, '')
  if (significant === '') return '0'
  const power = Number(exponent) - fraction.length + (digits.length - significant.length)
  return `${sign}${significant}e${power}`
}

const readNumber = (reader: Reader): number | InexactNumber => {
  const literal = take(reader, NUMBER)
  if (literal === undefined) throw invalid(reader, 'a value')
  const value = Number(literal)
  const exact = Number.isFinite(value) && decimalOf(literal) === decimalOf(String(value))
  return exact ? value : new InexactNumber(literal)
}

const readArray = (reader: Reader, depth: number): unknown[] => {
  const items: unknown[] = []
  if (takeChar(reader, ']')) return items
  do {
    countMember(reader)
    reader.path.push(items.length)
    items.push(readValue(reader, depth))
    reader.path.pop()
  } while (takeChar(reader, ','))
  if (!takeChar(reader, ']')) throw invalid(reader, '"," or "]"')
  return items
}

const countMember = (reader: Reader): void => {
  if (++reader.members > MEMBERS_MAX) throw limits(`The body has more than ${MEMBERS_MAX} members and items.`)
}

const readObject = (reader: Reader, depth: number): Record<string, unknown> => {
  // No prototype, so __proto__ is an ordinary member.
  const object: Record<string, unknown> = Object.create(null)
  if (takeChar(reader, '}')) return object
  do {
    skipSpace(reader)
    const name = readString(reader)
    countMember(reader)
    if (name === '__proto__')
      throw new Problem('validation_failed', { detail: 'A member must not be named __proto__.' })
    if (name in object)
      throw new Problem('duplicate_json_key', {
        detail: `The member "${name.slice(0, NAME_CHARS_SHOWN)}" occurs twice, the second time before character ${reader.at}.`,
      })
    if (!takeChar(reader, ':')) throw invalid(reader, '":"')
    reader.path.push(name)
    object[name] = readValue(reader, depth)
    reader.path.pop()
  } while (takeChar(reader, ','))
  if (!takeChar(reader, '}')) throw invalid(reader, '"," or "}"')
  return object
}

const readWord = (reader: Reader): boolean | null | undefined => {
  for (const [word, value] of WORDS) {
    if (!reader.text.startsWith(word, reader.at)) continue
    reader.at += word.length
    return value
  }
  return undefined
}

const readValue = (reader: Reader, depth: number): unknown => {
  skipSpace(reader)
  const char = reader.text[reader.at]
  if (char === '"') return readString(reader)
  if (char === '{' || char === '[') {
    if (depth === DEPTH_MAX) throw limits(`The body is nested more than ${DEPTH_MAX} levels deep.`)
    reader.at++
    return char === '{' ? readObject(reader, depth + 1) : readArray(reader, depth + 1)
  }
  const word = readWord(reader)
  return word === undefined ? readNumber(reader) : word
}

/** Parses JSON (RFC 8259) in UTF-8, and refuses anything that two parsers may read differently. Throws Problem. */
export const parseJson = (bytes: Uint8Array): unknown => {
  const reader: Reader = { text: decodeUtf8(bytes), at: 0, members: 0, path: [], violations: [] }
  const value = readValue(reader, 0)
  skipSpace(reader)
  if (reader.at < reader.text.length) throw invalid(reader, 'the end')
  if (reader.violations.length > 0) throw new Problem('validation_failed', { errors: reader.violations })
  return value
}

const decodeUtf8 = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Problem('invalid_json', { detail: 'The body is not valid UTF-8.' })
  }
}
