import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf, type Source } from './source.ts'

/** The rules that concern several files: folders with equal files, complete lists, declared packages. */

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** Generated folders, as in `.gitignore`. */
const IGNORED = new Set(['node_modules', '.git', '.data', '.kafka', 'coverage', 'dist'])

/** Written by generators, so that the rules of style do not concern them. */
const GENERATED = new Set(['scripts/client/src/generated.ts'])

/** The top level that the owner fixed. Files whose name begins with a dot configure tools, and are permitted too. */
const TOP_LEVEL = new Set([
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'biome.json',
  'docker-compose.yml',
  'Dockerfile',
  '.ci',
  '.github',
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'LICENSE',
  'src',
  'projections',
  'streams',
  'scripts',
  'test',
])
const DOTFILE = /^\.[a-z]+(?:\.json)?$/

export const AGGREGATE_FILES = ['decider.ts', 'events.ts', 'facts.ts', 'index.ts']
/** In the folder of an aggregate that has an event of an earlier version. */
export const UPCASTERS = 'upcasters.ts'
export const PROJECTION_FILES = ['projection.ts', 'queries.ts', 'table.sql']

/** Paths relative to the root of the repository, sorted. */
export const filesUnder = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !IGNORED.has(name))
    .flatMap(entry => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? filesUnder(path) : [path]
    })
    .toSorted()

export const sourceOf = (path: string): Source => ({ path, text: readFileSync(join(root, path), 'utf8') })

export const sources = (): Source[] =>
  filesUnder('')
    .filter(path => /\.tsx?$/.test(path) && !GENERATED.has(path))
    .map(sourceOf)

export const topLevel = (): string[] => readdirSync(root).filter(name => !IGNORED.has(name) && !name.endsWith('.log'))

export const unexpectedEntries = (names: readonly string[]): string[] =>
  names.filter(name => !TOP_LEVEL.has(name) && !(DOTFILE.test(name) && statSync(join(root, name)).isFile()))

/** Missing files and additional files, by folder. */
export const differingFolders = (paths: readonly string[], files: readonly string[]): string[] => {
  const folders = Map.groupBy(
    paths.filter(path => path.split('/').length > 2),
    path => path.slice(0, path.lastIndexOf('/')),
  )
  return [...folders].flatMap(([folder, actual]) => {
    const names = actual.map(path => path.slice(folder.length + 1))
    return [
      ...files.filter(name => !names.includes(name)).map(name => `${folder} lacks ${name}`),
      ...names.filter(name => !files.includes(name)).map(name => `${folder} has ${name} beside the common files`),
    ]
  })
}

/** Folders that the index file does not import. */
export const unlistedFolders = (paths: readonly string[], index: Source): string[] => {
  const folders = new Set(paths.filter(path => path.split('/').length > 2).map(path => path.split('/')[1] ?? ''))
  const listed = new Set(importsOf(index).map(({ target }) => target.split('/')[1] ?? ''))
  return [...folders].filter(folder => !listed.has(folder))
}

type Manifest = {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const EXACT = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/

export const inexactVersions = ({ dependencies, devDependencies, optionalDependencies }: Manifest): string[] =>
  Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
    .filter(([, version]) => !EXACT.test(version))
    .map(([name, version]) => `${name} ${version}`)

/**
 * Code in the image may use `dependencies` only, since the image lacks the others; the embedded services, which are not for
 * production, may use `optionalDependencies` too, and tests and scripts also `devDependencies`.
 */
export const undeclaredPackages = (source: Source, manifest: Manifest): string[] => {
  const { dependencies, devDependencies, optionalDependencies } = manifest
  const isShipped = /^(?:src|streams|projections)\//.test(source.path)
  const isOptional = !isShipped || source.path.startsWith('src/embedded/')
  const declared = {
    ...dependencies,
    ...(isOptional ? optionalDependencies : {}),
    ...(isShipped ? {} : devDependencies),
  }
  return importsOf(source)
    .filter(({ specifier, typeOnly }) => !typeOnly && !specifier.startsWith('.') && !specifier.startsWith('node:'))
    .filter(({ target }) => !Object.hasOwn(declared, target))
    .map(({ target }) => `${target} is not declared`)
}
