import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'

/**
 * The files of /console: the sources in src/console without their types, and the published modules of its libraries, as
 * found by following the imports of main.ts. There is no build.
 */

export type ServedFile = {
  readonly type: string
  readonly bytes: Buffer
  readonly brotli: Buffer
  readonly etag: string
}

export type ConsoleFiles = {
  /** By path below /console, which begins with a version that changes with any of them. */
  readonly files: ReadonlyMap<string, ServedFile>
  readonly importMap: string
  /** The paths of the modules that the first page needs. */
  readonly preloaded: readonly string[]
  readonly main: string
  readonly styles: readonly string[]
}

const OWN = new URL('../../console/', import.meta.url)
const MAIN = 'app/main.ts'
/** The page that most visits begin with. */
const FIRST_PAGE = 'app/pages/overview.ts'
const STYLES = ['app/style.css', 'uplot/dist/uPlot.min.css']

/** The modules that an import of the package's name means; other paths of a package are its files. */
const ENTRIES: Readonly<Record<string, string>> = {
  lit: 'index.js',
  'lit-html': 'lit-html.js',
  'lit-element': 'index.js',
  '@lit/reactive-element': 'reactive-element.js',
  '@lit/task': 'index.js',
  uplot: 'dist/uPlot.iife.min.js',
  oauth4webapi: 'build/index.js',
}

/** Where the package is found from: its own dependant, since npm may keep it in a folder of that. */
const DEPENDANTS: Readonly<Record<string, string>> = {
  'lit-html': 'lit',
  'lit-element': 'lit',
  '@lit/reactive-element': 'lit',
}

const folderOf = (name: string, from = import.meta.url): string => {
  const dependant = DEPENDANTS[name]
  const path = createRequire(dependant === undefined ? from : createRequire(from).resolve(dependant)).resolve(name)
  const folder = `node_modules/${name}/`
  return path.slice(0, path.lastIndexOf(folder) + folder.length)
}

const packageOf = (specifier: string): string | undefined =>
  Object.keys(ENTRIES).find(name => specifier === name || specifier.startsWith(`${name}/`))

/** The path below /console/<version>/ of an imported module. */
const pathOf = (specifier: string, importer: string): string => {
  if (specifier.startsWith('.')) return new URL(specifier, `file:///${importer}`).pathname.slice(1)
  const name = packageOf(specifier)
  if (name === undefined) throw new Error(`The console imports ${specifier}, which is none of its libraries.`)
  return specifier === name ? `${name}/${ENTRIES[name]}` : specifier
}

const SOURCE_MAP = /\/\/# sourceMappingURL=\S+\s*$/

const sourceOf = async (path: string): Promise<string> => {
  if (path.startsWith('app/')) {
    const text = await readFile(new URL(path.slice('app/'.length), OWN), 'utf8')
    return path.endsWith('.ts') ? stripTypeScriptTypes(text) : text
  }
  const name = packageOf(path) ?? ''
  const text = await readFile(`${folderOf(name)}${path.slice(name.length + 1)}`, 'utf8')
  // uPlot publishes its small form as a script. No maps are served, and developer tools would ask for them.
  return path === `uplot/${ENTRIES['uplot']}` ? `${text}\nexport default uPlot` : text.replace(SOURCE_MAP, '')
}

const STATIC = /(?:^|[;}\n])\s*(?:import|export)\b\s*(?:[\w$*{][^'"`;()]*?\bfrom\s*)?["']([^"'\n]+)["']/g
const DYNAMIC = /\bimport\(\s*["']([^"'\n]+)["']\s*\)/g

const importsOf = (text: string, pattern: RegExp, importer: string): string[] =>
  [...text.matchAll(pattern)].map(([, specifier = '']) => pathOf(specifier, importer))

/** All modules that are reached from main.ts, and those among them that the first page imports before it is shown. */
const collect = async () => {
  const sources = new Map<string, string>()
  const visit = async (path: string, follow: readonly RegExp[]): Promise<void> => {
    if (sources.has(path)) return
    const text = await sourceOf(path)
    sources.set(path, text)
    for (const next of follow.flatMap(pattern => importsOf(text, pattern, path))) await visit(next, follow)
  }
  for (const path of [MAIN, FIRST_PAGE]) await visit(path, [STATIC])
  const preloaded = [...sources.keys()].filter(path => path !== MAIN)
  const first = [...sources]
  for (const [path, text] of first)
    for (const next of importsOf(text, DYNAMIC, path)) await visit(next, [STATIC, DYNAMIC])
  for (const path of STYLES) sources.set(path, await sourceOf(path))
  return { sources, preloaded }
}

const digestOf = (text: string, characters: number): string =>
  createHash('sha256').update(text).digest('base64url').slice(0, characters)

const VERSION_CHARS = 16
/** Higher qualities take seconds for a few per cent. */
const BROTLI_QUALITY = 9

export const servedFile = async (type: string, text: string): Promise<ServedFile> => {
  const bytes = Buffer.from(text)
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  const brotli = await promisify(brotliCompress)(bytes, { params })
  return { type: `${type}; charset=utf-8`, bytes, brotli, etag: digestOf(text, VERSION_CHARS) }
}

/** Reads all files of the console. Throws when one that is imported does not exist. */
export const readConsoleFiles = async (): Promise<ConsoleFiles> => {
  const { sources, preloaded } = await collect()
  const version = digestOf(JSON.stringify([...sources]), VERSION_CHARS)
  const files = await Promise.all(
    [...sources].map(async ([path, text]) => {
      const type = path.endsWith('.css') ? 'text/css' : 'text/javascript'
      return [`${version}/${path}`, await servedFile(type, text)] as const
    }),
  )
  const below = (path: string): string => `/console/${version}/${path}`
  const imports = Object.entries(ENTRIES).flatMap(([name, entry]) => [
    [name, below(`${name}/${entry}`)],
    [`${name}/`, below(`${name}/`)],
  ])
  return {
    files: new Map(files),
    importMap: JSON.stringify({ imports: Object.fromEntries(imports) }),
    preloaded: preloaded.map(below),
    main: below(MAIN),
    styles: STYLES.map(below),
  }
}
