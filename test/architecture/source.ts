/** A reader of sources as text: comments, code without strings, imports and functions. Parsing needs no compiler. */

export type Source = { readonly path: string; readonly text: string }

export type Import = {
  /** As it is written: `./decider.ts`, `zod`, `node:fs`. */
  readonly specifier: string
  /** A path in the repository, or the name of a package. */
  readonly target: string
  readonly typeOnly: boolean
}

type Blanking = { readonly strings: boolean }

const blanked = (text: string): string => text.replaceAll(/[^\n]/g, ' ')

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//y
const QUOTED = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y
/** A slash begins a regular expression where a value may begin; after a value it is a division. */
const REGEX = /\/(?![/*])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y
const MAY_BEGIN_VALUE = /(?:^|[([{,;=:!&|?+\-*%<>~^]|=>|\b(?:return|typeof|case|in|of|do|else|await|yield))\s*$/

const matchAt = (pattern: RegExp, text: string, at: number): string | undefined => {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

/** The end of the template literal that begins at `at`, its `${}` parts included. */
const templateEnd = (text: string, at: number): number => {
  for (let end = at + 1; end < text.length; end += 1) {
    if (text[end] === '\\') end += 1
    else if (text[end] === '`') return end + 1
    else if (text.startsWith('${', end)) end = closing(text, end + 1, true)
  }
  return text.length
}

const commentOrLiteralAt = (text: string, at: number): { piece: string; isComment: boolean } | undefined => {
  const comment = matchAt(COMMENT, text, at)
  if (comment !== undefined) return { piece: comment, isComment: true }
  if (text[at] === '`') return { piece: text.slice(at, templateEnd(text, at)), isComment: false }
  const quoted = matchAt(QUOTED, text, at)
  if (quoted !== undefined) return { piece: quoted, isComment: false }
  if (text[at] !== '/' || !MAY_BEGIN_VALUE.test(text.slice(Math.max(0, at - 40), at))) return undefined
  const regex = matchAt(REGEX, text, at)
  return regex === undefined ? undefined : { piece: regex, isComment: false }
}

/** The same text with blanks in place of comments and, by default, of strings: lines and columns stay the same. */
export const codeOf = (text: string, { strings }: Blanking = { strings: true }): string => {
  let code = ''
  for (let at = 0; at < text.length; ) {
    const actual = '/\'"`'.includes(text[at] ?? '') ? commentOrLiteralAt(text, at) : undefined
    if (actual === undefined) {
      code += text[at]
      at += 1
    } else {
      code += actual.isComment || strings ? blanked(actual.piece) : actual.piece
      at += actual.piece.length
    }
  }
  return code
}

export type Comment = { readonly line: number; readonly lastLine: number; readonly text: string }

/** Comments with their text free of `/**`, `*` and `//`; consecutive lines of `//` are one comment. */
export const commentsOf = (text: string): Comment[] => {
  const comments: Comment[] = []
  let previous = ''
  for (let at = 0; at < text.length; ) {
    const actual = '/\'"`'.includes(text[at] ?? '') ? commentOrLiteralAt(text, at) : undefined
    if (actual?.isComment === true) {
      const comment = commentOf(actual.piece, lineAt(text, at))
      const last = comments.at(-1)
      if (last !== undefined && isContinued(previous, actual.piece) && last.lastLine === comment.line - 1)
        comments.splice(-1, 1, { ...last, lastLine: comment.line, text: `${last.text}\n${comment.text}` })
      else comments.push(comment)
      previous = actual.piece
    }
    at += actual?.piece.length ?? 1
  }
  return comments
}

const isContinued = (previous: string, piece: string): boolean => previous.startsWith('//') && piece.startsWith('//')

const commentOf = (piece: string, line: number): Comment => ({
  line,
  lastLine: lineAt(piece, piece.length) + line - 1,
  text: piece.startsWith('//')
    ? piece.slice(2).trim()
    : piece
        .slice(2, -2)
        .replaceAll(/^[ \t]*\*+[ \t]?/gm, '')
        .trim(),
})

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/** The position at which the bracket that opens at `at` closes. `raw`: the text may still hold strings and comments. */
export const closing = (code: string, at: number, raw = false): number => {
  const expected: string[] = []
  for (let index = at; index < code.length; index += 1) {
    const actual = raw && '/\'"`'.includes(code[index] ?? '') ? commentOrLiteralAt(code, index) : undefined
    if (actual !== undefined) {
      index += actual.piece.length - 1
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
  // Keywords are searched in code without strings, and their module names in code with strings.
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
/** The text after a parameter list: an optional return type, then an arrow, a body or both. */
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

/** Functions, methods and arrow functions with a parameter list in brackets. The length counts a body in braces. */
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
