/**
 * Everything that the command line says goes through here. Names, reasons and other texts come from anybody, and a
 * terminal obeys what some characters say: they are shown as escapes, so that no text can move the cursor, change what
 * was printed before, or look like a line of its own.
 */

/** C0, DEL and C1 controls, line and paragraph separators, and what changes the direction of writing. */
const COMMANDS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const COMMANDS_BUT_LINE_FEED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The text as it may be shown in one line. */
export const visible = (text: string): string => text.replace(COMMANDS, escapeOf)

/** The same for a text that has lines. In JSON the escapes mean the characters that they stand for. */
const visibleLines = (text: string): string => text.replace(COMMANDS_BUT_LINE_FEED, escapeOf)

/** One line on stdout, where the results go, and nothing but the results. */
export const print = (line = ''): void => void process.stdout.write(`${visible(line)}\n`)

/** Several lines on stdout, of a text that was made here. */
export const printLines = (lines: string): void => void process.stdout.write(`${visibleLines(lines)}\n`)

/** On stderr, where everything goes that is no result. */
export const tell = (words: string): void => void process.stderr.write(`${visibleLines(words)}\n`)

/** One JSON document on stdout. Positions and revisions are texts in it: they may be larger than a float holds. */
export const printJson = (document: unknown): void =>
  printLines(JSON.stringify(document, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2))
