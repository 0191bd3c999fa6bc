import { codeOf, functionsOf, importsOf, lineAt, type Source } from './source.ts'

/** The rules of the style card that can be read off one file. Each answers with what is wrong, in words. */

export type Rule = (source: Source) => string[]

export const FILE_LINES_MAX = 250
/** A test is a list of cases: what makes a source hard to read makes a list only long. */
export const TEST_LINES_MAX = 500
export const FUNCTION_LINES_MAX = 70
export const PARAMETERS_MAX = 4

const found = (text: string, pattern: RegExp, what: string): string[] =>
  [...text.matchAll(pattern)].map(({ index }) => `line ${lineAt(text, index)}: ${what}`)

const isTest = (path: string): boolean => path.startsWith('test/')
const isPure = (path: string): boolean => /^(streams|projections)\//.test(path)

const fileLength: Rule = ({ path, text }) => {
  const lines = text.trimEnd().split('\n').length
  const most = isTest(path) ? TEST_LINES_MAX : FILE_LINES_MAX
  return lines > most ? [`${lines} lines, ${most} at most`] : []
}

const functionLength: Rule = ({ path, text }) =>
  // The body of a describe is a list of cases, not a function to be understood at once.
  isTest(path)
    ? []
    : functionsOf(text)
        .filter(({ lines }) => lines > FUNCTION_LINES_MAX)
        .map(({ line, lines }) => `line ${line}: a function of ${lines} lines, ${FUNCTION_LINES_MAX} at most`)

const parameterCount: Rule = ({ text }) =>
  functionsOf(text)
    .filter(({ parameters }) => parameters > PARAMETERS_MAX)
    .map(({ line, parameters }) => `line ${line}: ${parameters} parameters, ${PARAMETERS_MAX} at most`)

const noSkippedTests: Rule = ({ text }) =>
  found(codeOf(text), /\.(?:skip|only)\s*\(|\bx(?:it|describe)\s*\(/g, 'a skipped test')

/** Words in two halves, so that these files do not hold what they forbid. */
export const forbiddenWords = {
  later: ['TO', 'DO'].join(''),
  repair: ['FIX', 'ME'].join(''),
  home: ['/ho', 'me/'].join(''),
}

const LEFT_OVER = new RegExp(`\\b(?:${forbiddenWords.later}|${forbiddenWords.repair})\\b`, 'g')
const nothingLeftOver: Rule = ({ text }) => found(text, LEFT_OVER, 'something left for later')

const ANY = /(?::|\bas|<)\s*any\b|\bany(?:\[\]|>)/
const noUnexplainedAny: Rule = ({ text }) => {
  const lines = text.split('\n')
  const isExplained = (index: number): boolean =>
    [lines[index - 1], lines[index]].some(line => /\/\/ |\*\/\s*$/.test(line ?? ''))
  return codeOf(text)
    .split('\n')
    .flatMap((line, index) => (ANY.test(line) && !isExplained(index) ? [`line ${index + 1}: any, unexplained`] : []))
}

const noHolesInTypes: Rule = ({ text }) => [
  ...found(codeOf(text), /\bas\s+unknown\s+as\b/g, 'a cast through unknown'),
  ...found(text, /@ts-(?:ignore|nocheck|expect-error)/g, 'the compiler silenced'),
]

const erasableOnly: Rule = ({ text }) => [
  ...found(codeOf(text), /^[ \t]*(?:export\s+)?(?:declare\s+)?(?:const\s+)?enum\s+\w/gm, 'an enum'),
  ...found(codeOf(text), /^[ \t]*(?:export\s+)?(?:declare\s+)?namespace\s+\w/gm, 'a namespace'),
  ...found(
    codeOf(text),
    /\bconstructor\s*\((?:[^)]*,)?\s*(?:public|private|protected|readonly)\s+\w/g,
    'a parameter property',
  ),
]

/** A refused command that nobody looks at is taken for one that was carried out. */
const noDroppedAnswers: Rule = ({ path, text }) =>
  path.startsWith('src/')
    ? found(codeOf(text), /^[ \t]*(?:void |await )?handle\(/gm, 'the answer to a command is dropped')
    : []

/** The one reader of the environment, what must run before it, and who hands the search path on to Postgres. */
const ENVIRONMENT_READERS = new Set(['src/config.ts', 'src/telemetry.ts', 'src/embedded/postgresCluster.ts'])
const environmentReadOnce: Rule = ({ path, text }) =>
  !path.startsWith('src/') || ENVIRONMENT_READERS.has(path)
    ? []
    : // `NodeJS.ProcessEnv` is a type, and `env: process.env` in a comment is no code.
      found(codeOf(text), /\bprocess\.env\b/g, 'the environment read outside src/config.ts')

const pureRooms: Rule = source =>
  isPure(source.path)
    ? [
        ...importsOf(source)
          .filter(({ target }) => target.startsWith('node:'))
          .map(({ specifier }) => `${specifier} in a pure room`),
        ...found(codeOf(source.text), /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\./g, 'not pure'),
      ]
    : []

const noDefaultBranch: Rule = ({ path, text }) =>
  path.startsWith('streams/') ? found(codeOf(text), /\bdefault\s*:/g, 'a default branch hides a new event') : []

/** A process manager is a pattern by that name. */
const plainNames: Rule = ({ path }) =>
  /(?<!\/process)(?:Manager|Helper|Util|Service)s?\.ts$|\/(?:helper|util)s?\.ts$/.test(path)
    ? ['the name says nothing']
    : []

const noPathsOfThisMachine: Rule = ({ text }) =>
  found(text, /\/(?:home|Users|root|work)\/[a-z]/g, 'a path of one machine')

export const rules: Readonly<Record<string, Rule>> = {
  fileLength,
  functionLength,
  parameterCount,
  noSkippedTests,
  nothingLeftOver,
  noUnexplainedAny,
  noHolesInTypes,
  noDroppedAnswers,
  erasableOnly,
  environmentReadOnce,
  pureRooms,
  noDefaultBranch,
  plainNames,
  noPathsOfThisMachine,
}
