import { Command, Option } from 'commander'

/**
 * All output of the command line. Names, reasons and other texts come from untrusted clients, and terminals interpret
 * control characters, so these are shown as escapes: no text can move the cursor, alter earlier output, or imitate
 * another line.
 */

/** C0, DEL and C1 controls, line and paragraph separators, and controls of the writing direction. */
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const CONTROL_CHARACTERS_BUT_LINE_FEED =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The text in one line, with control characters as escapes. */
export const escaped = (text: string): string => text.replace(CONTROL_CHARACTERS, escapeOf)

/** The same for several lines. The parser of a JSON document reads the escapes as the characters. */
const escapedLines = (text: string): string => text.replace(CONTROL_CHARACTERS_BUT_LINE_FEED, escapeOf)

export const print = (line = ''): void => void process.stdout.write(`${escaped(line)}\n`)

/** Prints several lines on stdout, from a text that was composed here. */
export const printLines = (lines: string): void => void process.stdout.write(`${escapedLines(lines)}\n`)

export const printNotice = (words: string): void => void process.stderr.write(`${escapedLines(words)}\n`)

/** Prints one JSON document on stdout. Positions and revisions are strings, since they may exceed a float. */
export const printJson = (document: unknown): void =>
  printLines(JSON.stringify(document, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2))

/** `1 row`, `1,234 rows`. */
export const counted = (count: number | bigint, noun: string): string =>
  `${count.toLocaleString('en-US')} ${noun}${Number(count) === 1 ? '' : 's'}`

/** Ends the process with its exit code when everything that was printed has been written. */
export const exitWhenPrinted = (): void => void process.stdout.write('', () => process.exit())

export const jsonOption = (description = 'print JSON'): Option => new Option('--json', description).default(false)

export const jsonCommand = (name: string, description: string): Command =>
  new Command(name).description(description).addOption(jsonOption())
