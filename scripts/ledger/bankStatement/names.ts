import type { StatementLine } from './statementLine.ts'

/** The names of payments in a line of a statement: references, and words of free texts that may be one. */

const NAME_CHARS_MAX = 500
const WORD_CHARS_MIN = 4
const NAMES_MAX = 20

const isName = (text: string): boolean => text.length > 0 && text.length <= NAME_CHARS_MAX && !text.includes('\u0000')

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)].filter(isName).slice(0, NAMES_MAX)

/** Words with a digit, whole, and in the parts between + and /, with which banks mark fields: EREF+…, /ROC/… */
const wordsOf = (text: string): readonly string[] =>
  text
    .split(/[\s,;:()[\]"']+/)
    .flatMap(word => [word, ...word.split(/[+/]/)])
    .map(word => word.replace(/[.!?]+$/, ''))
    .filter(word => word.length >= WORD_CHARS_MIN && /\d/.test(word))

/** The references of the line, the strongest first. */
export const referencesIn = ({ references }: StatementLine): readonly string[] => unique(references)

/** The names that its free texts may contain: each whole text, then its words. */
export const namesInTexts = ({ texts }: StatementLine): readonly string[] =>
  unique([...texts, ...texts.flatMap(wordsOf)])
