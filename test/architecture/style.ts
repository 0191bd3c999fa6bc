import { codeOf, commentsOf, type FunctionFound, functionsOf, importsOf, lineAt, type Source } from './source.ts'

/** The style rules that concern one file each. A rule returns its violations in words. */

export type Rule = (source: Source) => string[]

export const FILE_LINES_MAX = 400
/** Tests are lists of independent cases, which stay readable at twice the length of other sources. */
export const TEST_LINES_MAX = 500
export const FUNCTION_LINES_MAX = 40
/** The limit for functions with a comment that begins "Long because" and gives the reason. */
export const EXPLAINED_FUNCTION_LINES_MAX = 70
export const PARAMETERS_MAX = 4

const actual = (text: string, pattern: RegExp, violation: string): string[] =>
  [...text.matchAll(pattern)].map(({ index }) => `line ${lineAt(text, index)}: ${violation}`)

const isTest = (path: string): boolean => path.startsWith('test/')
const isPure = (path: string): boolean => /^(streams|projections)\//.test(path)

export const fileLength: Rule = ({ path, text }) => {
  const lines = text.trimEnd().split('\n').length
  const most = isTest(path) ? TEST_LINES_MAX : FILE_LINES_MAX
  return lines > most ? [`${lines} lines, ${most} at most`] : []
}

/** A reason stands in the comment directly above a function, or in its first lines. */
const REASON = /\bLong because\b/
const REASON_LINES = 5

const hasReason = (text: string, { line }: FunctionFound): boolean =>
  commentsOf(text).some(
    comment => REASON.test(comment.text) && comment.lastLine >= line - 1 && comment.line <= line + REASON_LINES,
  )

const functionLength: Rule = ({ path, text }) =>
  // The body of a describe is a list of cases, not a function to be understood at once.
  isTest(path)
    ? []
    : functionsOf(text)
        .filter(({ lines }) => lines > FUNCTION_LINES_MAX)
        .filter(long => long.lines > EXPLAINED_FUNCTION_LINES_MAX || !hasReason(text, long))
        .map(
          ({ line, lines }) =>
            `line ${line}: a function of ${lines} lines; at most ${FUNCTION_LINES_MAX}, or ` +
            `${EXPLAINED_FUNCTION_LINES_MAX} with a comment "Long because …" beside it`,
        )

const parameterCount: Rule = ({ text }) =>
  functionsOf(text)
    .filter(({ parameters }) => parameters > PARAMETERS_MAX)
    .map(({ line, parameters }) => `line ${line}: ${parameters} parameters, ${PARAMETERS_MAX} at most`)

const noSkippedTests: Rule = ({ text }) =>
  actual(codeOf(text), /\.(?:skip|only)\s*\(|\bx(?:it|describe)\s*\(/g, 'a skipped test')

/** The cases of an imported test file would run in the importing file as well, or in either by the order of loading. */
const noTestsImported: Rule = source =>
  importsOf(source)
    .filter(({ specifier }) => specifier.endsWith('.test.ts'))
    .map(({ specifier }) => `${specifier} is imported`)

/** A time limit ends a case that hangs, so .mocharc.json has one for all cases. These files have longer cases. */
const LONGER_CASES = /^test\/(?:soak\/|simulation\/simulation\.test|http\/randomRequests\.test)/
const oneTimeLimit: Rule = ({ path, text }) =>
  LONGER_CASES.test(path) ? [] : actual(codeOf(text), /\bthis\.timeout\(/g, 'a time limit beside that of .mocharc.json')

/** Words in two halves, because this file must not contain the words that it forbids. */
export const forbiddenWords = {
  later: ['TO', 'DO'].join(''),
  repair: ['FIX', 'ME'].join(''),
  home: ['/ho', 'me/'].join(''),
}

const LEFT_OVER = new RegExp(`\\b(?:${forbiddenWords.later}|${forbiddenWords.repair})\\b`, 'g')
const noUnfinishedWork: Rule = ({ text }) => actual(text, LEFT_OVER, 'a note about unfinished work')

const ANY = /(?::|\bas|<)\s*any\b|\bany(?:\[\]|>)/
const noUnexplainedAny: Rule = ({ text }) => {
  const lines = text.split('\n')
  const isExplained = (index: number): boolean =>
    [lines[index - 1], lines[index]].some(line => /\/\/ |\*\/\s*$/.test(line ?? ''))
  return codeOf(text)
    .split('\n')
    .flatMap((line, index) => (ANY.test(line) && !isExplained(index) ? [`line ${index + 1}: any, unexplained`] : []))
}

const noUnsafeCasts: Rule = ({ text }) => [
  ...actual(codeOf(text), /\bas\s+unknown\s+as\b/g, 'a cast through unknown'),
  ...actual(text, /@ts-(?:ignore|nocheck|expect-error)/g, 'a suppressed compiler error'),
]

const erasableOnly: Rule = ({ text }) => [
  ...actual(codeOf(text), /^[ \t]*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w/gm, 'an enum'),
  ...actual(codeOf(text), /^[ \t]*(?:export\s+)?(?:declare\s+)?namespace\s+\w/gm, 'a namespace'),
  ...actual(
    codeOf(text),
    /\bconstructor\s*\((?:[^)]*,)?\s*(?:public|private|protected|readonly)\s+\w/g,
    'a parameter property',
  ),
]

/** An ignored rejection looks like success to the code that follows. */
const noIgnoredResults: Rule = ({ path, text }) =>
  path.startsWith('src/')
    ? actual(codeOf(text), /^[ \t]*(?:void |await )?handle\(/gm, 'the result of a command is ignored')
    : []

/** The reader of the environment, telemetry (which starts before it), and the launcher of Postgres (which passes PATH on). */
const ENVIRONMENT_READERS = new Set([
  'src/settings/config.ts',
  'src/telemetry.ts',
  'src/embedded/postgres/cluster.ts',
  // Passes it on to its child.
  'src/childProcesses/childProcess.ts',
])
const environmentReadOnce: Rule = ({ path, text }) =>
  !path.startsWith('src/') || ENVIRONMENT_READERS.has(path)
    ? []
    : // `NodeJS.ProcessEnv` is a type, and `env: process.env` in a comment is no code.
      actual(codeOf(text), /\bprocess\.env\b/g, 'process.env outside src/settings/config.ts')

const pureLayers: Rule = source =>
  isPure(source.path)
    ? [
        ...importsOf(source)
          .filter(({ target }) => target.startsWith('node:'))
          .map(({ specifier }) => `${specifier} in a pure layer`),
        ...actual(codeOf(source.text), /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\./g, 'not pure'),
      ]
    : []

const noDefaultBranch: Rule = ({ path, text }) =>
  path.startsWith('streams/')
    ? actual(codeOf(text), /\bdefault\s*:/g, 'a default branch, which hides unhandled events')
    : []

/** Process manager is the name of a pattern, so it is permitted. */
const plainNames: Rule = ({ path }) =>
  /(?<!\/process)(?:Manager|Helper|Util|Service)s?\.ts$|\/(?:helper|util)s?\.ts$/.test(path)
    ? ['a name that does not say what the file holds']
    : []

const noAbsolutePaths: Rule = ({ text }) => actual(text, /\/(?:home|Users|root|work)\/[a-z]/g, 'an absolute path')

export const rules: Readonly<Record<string, Rule>> = {
  fileLength,
  functionLength,
  parameterCount,
  noSkippedTests,
  noTestsImported,
  oneTimeLimit,
  noUnfinishedWork,
  noUnexplainedAny,
  noUnsafeCasts,
  noIgnoredResults,
  erasableOnly,
  environmentReadOnce,
  pureLayers,
  noDefaultBranch,
  plainNames,
  noAbsolutePaths,
}
