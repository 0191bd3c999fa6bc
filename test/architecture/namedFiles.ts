/** The files and folders that comments and documents name must exist, so that a rename cannot leave a stale name behind. */

/** `feeds/parking.ts`, `README.md`; not `<aggregate>.test.ts`, `$1.ts` or the end of a URL. */
const FILE = /(?<![\w/.<>*$?&=-])(?:[\w-]+\/)*[\w-]+(?:\.test|\.config)?\.(?:ts|sql|css|md)(?![\w*>])/g
/** `src/http/versions`, `projections/` */
const FOLDER = /(?<![\w/.-])(?:src|streams|projections|scripts|test)\/(?:[\w-]+(?:\/[\w-]+)*\/?)?(?![\w*<>./{-])/g
/** A folder in the map of README.md: a name and a slash, between spaces. */
const MAP_FOLDER = /(?<=^|[\s·])[a-zA-Z][\w-]*\/(?=[\s,;:]|$)/gm

const isSuffixOf = (paths: readonly string[], name: string): boolean =>
  paths.some(path => path === name || path.endsWith(`/${name}`))

/** Files that a text names and that are none of `paths`, which are relative to the root of the repository. */
export const missingFiles = (text: string, paths: readonly string[]): string[] =>
  [...text.matchAll(FILE)].map(([name]) => name).filter(name => !isSuffixOf(paths, name))

const isFolder = (paths: readonly string[], name: string): boolean =>
  paths.some(path => path.startsWith(`${name}/`) || path.includes(`/${name}/`))

const withoutSlash = (name: string): string => name.replace(/\/$/, '')

/** Folders that a document names and that none of `paths` is in. */
export const missingFolders = (text: string, paths: readonly string[]): string[] =>
  [FOLDER, MAP_FOLDER]
    .flatMap(pattern => [...text.matchAll(pattern)].map(([name]) => withoutSlash(name)))
    .filter(name => !isFolder(paths, name) && !paths.includes(name))

/** With the language: a closing fence looks like an opening one without. */
const BLOCK = /^```(.*)\n([\s\S]*?)^```$/gm
/** A name of several words, such as `timeBudgets`: in a map it is the name of a file without `.ts`. */
const CAMEL_CASE = /(?<![\w/.])[a-z]+(?:[A-Z][a-z]+)+(?![\w/.])/g

/** Names of files and folders in the maps of a document (fenced blocks without a language) that are none of `paths`. */
export const missingMapNames = (text: string, paths: readonly string[]): string[] =>
  [...text.matchAll(BLOCK)]
    .filter(([, language]) => language === '')
    .flatMap(([, , map = '']) => [...map.matchAll(CAMEL_CASE)].map(([name]) => name))
    .filter(name => !isSuffixOf(paths, `${name}.ts`) && !isFolder(paths, name))
