/** Reads the sources as text, just well enough to hold them to rules: no compiler, no guess that a rule depends on. */

export type Source = { readonly path: string; readonly text: string }

export type Import = {
  /** As it is written: `./decider.ts`, `zod`, `node:fs`. */
  readonly specifier: string
  /** A path of the repository, or the name of a package. */
  readonly target: string
  readonly typeOnly: boolean
}

type Blank = { readonly strings: boolean }

const blanked = (text: string): string => text.replaceAll(/[^\n]/g, ' ')

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const QUOTED = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y
/** A slash begins a regular expression where a value may begin, and divides where one has just ended. */
const REGEX = /\/(?![/*])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const MAY_BEGIN_VALUE = /(?:^|[([{,;=:!&|?+\-*%<>~^]|=>|\b(?:return|typeof|case|in|of|do|else|await|yield))\s*$/

const matchAt = (pattern: RegExp, text: string, at: number): string | undefined => {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

/** The end of the template literal that begins at `at`; what stands in `${}` is skipped with it. */
const templateEnd = (text: string, at: number): number => {
  for (let end = at + 1; end < text.length; end += 1) {
    if (text[end] === '\\') end += 1
    else if (text[end] === '`') return end + 1
    else if (text.startsWith('${', end)) end = closing(text, end + 1, true)
  }
  return text.length
}

const skipped = (text: string, at: number): { piece: string; isComment: boolean } | undefined => {
  const comment = matchAt(COMMENT, text, at)
  if (comment !== undefined) return { piece: comment, isComment: true }
  if (text[at] === '`') return { piece: text.slice(at, templateEnd(text, at)), isComment: false }
  const quoted = matchAt(QUOTED, text, at)
  if (quoted !== undefined) return { piece: quoted, isComment: false }
  if (text[at] !== '/' || !MAY_BEGIN_VALUE.test(text.slice(Math.max(0, at - 40), at))) return undefined
  const regex = matchAt(REGEX, text, at)
  return regex === undefined ? undefined : { piece: regex, isComment: false }
}

/** The same text, line by line and column by column, without its comments and, if wanted, without its strings. */
export const codeOf = (text: string, { strings }: Blank = { strings: true }): string => {
  let code = ''
  for (let at = 0; at < text.length; ) {
    const found = '/\'"`'.includes(text[at] ?? '') ? skipped(text, at) : undefined
    if (found === undefined) {
      code += text[at]
      at += 1
    } else {
      code += found.isComment || strings ? blanked(found.piece) : found.piece
      at += found.piece.length
    }
  }
  return code
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/** Where the bracket that opens at `at` closes. `raw`: the text may still hold strings and comments. */
export const closing = (code: string, at: number, raw = false): number => {
  const expected: string[] = []
  for (let index = at; index < code.length; index += 1) {
    const found = raw && '/\'"`'.includes(code[index] ?? '') ? skipped(code, index) : undefined
    if (found !== undefined) {
      index += found.piece.length - 1
      continue
    }
    const character = code[index] ?? ''
    if (character in CLOSING) expected.push(CLOSING[character] ?? '')
    else if (character === expected.at(-1)) expected.pop()
    if (expected.length === 0) return index
  }
  return code.length
}

export const lineAt = (text: string, at: number): number => text.slice(0, at).split('\n').length

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

const resolve = (path: string, specifier: string): string =>
  specifier.startsWith('.') ? new URL(specifier, `file:///${path}`).pathname.slice(1) : specifier

const IMPORT =
  /(?:import|export)\s+(?<type>type\s+)?(?<names>[\w\s{},*$]*?)\bfrom\s*'(?<from>[^']+)'|import\s*\(?\s*'(?<bare>[^']+)'/y

export const importsOf = ({ path, text }: Source): Import[] => {
  // Where the word stands in the code; what it imports is a string.
  const withStrings = codeOf(text, { strings: false })
  return [...codeOf(text).matchAll(/\b(?:import|export)\b/g)].flatMap(({ index }) => {
    IMPORT.lastIndex = index
    const groups = IMPORT.exec(withStrings)?.groups
    return groups === undefined ? [] : [importOf(path, groups)]
  })
}

const importOf = (path: string, groups: Readonly<Record<string, string | undefined>>): Import => {
  const specifier = groups['from'] ?? groups['bare'] ?? ''
  const members = /\{([^}]*)\}/.exec(groups['names'] ?? '')?.[1]?.split(',') ?? []
  const named = members.map(name => name.trim()).filter(name => name !== '')
  const allTypes =
    named.length > 0 && named.every(name => name.startsWith('type ')) && /^\s*\{/.test(groups['names'] ?? '')
  const isPackage = !specifier.startsWith('.') && !specifier.startsWith('node:')
  const target = isPackage ? packageOf(specifier) : resolve(path, specifier)
  return { specifier, target, typeOnly: groups['type'] !== undefined || allTypes }
}

export type FunctionFound = { readonly line: number; readonly lines: number; readonly parameters: number }

const NOT_FUNCTIONS = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'await', 'return'])
/** After a parameter list: the arrow or the body, with the return type before it. */
const BODY = /^\s*(?::[^;=]{0,200}?)?(?:=>\s*)?\{/
const ARROW = /^\s*(?::[^;=]{0,200}?)?=>/

const countParameters = (list: string): number => {
  let depth = 0
  let commas = 0
  for (const character of list) {
    if ('([{<'.includes(character)) depth += 1
    else if (')]}>'.includes(character)) depth -= 1
    else if (character === ',' && depth === 0) commas += 1
  }
  const last = list.trimEnd().endsWith(',') ? 1 : 0
  return list.trim() === '' ? 0 : commas + 1 - last
}

/** Functions, methods and arrows with a parameter list in brackets; length by body where that is a block. */
export const functionsOf = (text: string): FunctionFound[] => {
  const code = codeOf(text)
  return [...code.matchAll(/\(/g)].flatMap(({ index }) => {
    const close = closing(code, index)
    const before = /(\w+)(?:<[^()]*>)?\s*$/.exec(code.slice(Math.max(0, index - 120), index))?.[1]
    const after = code.slice(close + 1, close + 400)
    const isNamed = before !== undefined && before !== 'async' && before !== 'function'
    if (isNamed && (NOT_FUNCTIONS.has(before) || !BODY.test(after) || ARROW.test(after))) return []
    if (!ARROW.test(after) && !BODY.test(after)) return []
    const body = BODY.exec(after)?.[0]
    const end = body === undefined ? close : closing(code, close + body.length)
    const line = lineAt(code, index)
    const parameters = countParameters(code.slice(index + 1, close))
    return [{ line, lines: lineAt(code, end) - line + 1, parameters }]
  })
}
