import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { importsOf } from '../architecture/source.ts'

/** Which tests load a file, by the imports in the sources: a test that does not load it cannot notice a bug in it. */

/** How many imports lie between a file and each file that it loads. */
export type Distances = ReadonlyMap<string, number>

/** A program that a test starts as a process of its own is named by its path, and imported nowhere. */
const PROGRAM = /'(?<path>\.{1,2}\/[\w./]+\.ts)'/g

const neighboursOf = (folder: string, path: string): readonly string[] => {
  const text = readFileSync(join(folder, path), 'utf8')
  const imports = importsOf({ path, text })
  const isErased = (named: string): boolean =>
    imports.some(({ specifier }) => specifier === named) &&
    imports.every(({ specifier, typeOnly }) => specifier !== named || typeOnly)
  return [...text.matchAll(PROGRAM)]
    .map(({ groups }) => groups?.['path'] ?? '')
    .filter(specifier => !isErased(specifier))
    .map(specifier => posix.join(posix.dirname(path), specifier))
}

/** Reads each source of the folder once, however many tests load it. */
export const createDistances = (folder: string): ((from: string) => Distances) => {
  const isSource = new Set(globSync('{src,streams,projections,scripts,test}/**/*.ts', { cwd: folder }))
  const neighbours = new Map<string, readonly string[]>()
  const next = (path: string): readonly string[] => {
    const known = neighbours.get(path) ?? neighboursOf(folder, path).filter(found => isSource.has(found))
    neighbours.set(path, known)
    return known
  }
  return from => {
    const distances = new Map([[from, 0]])
    for (const [path, distance] of distances)
      for (const found of next(path)) if (!distances.has(found)) distances.set(found, distance + 1)
    return distances
  }
}

/** A test that loads this starts processes, such as a Postgres of its own, and takes seconds to begin. */
const STARTS_PROCESSES = 'src/embedded/childSupervisor.ts'

export type TestFile = { readonly path: string; readonly loads: Distances }

export const startsProcesses = ({ loads }: TestFile): boolean => loads.has(STARTS_PROCESSES)

/** `test/feeds/poison.test.ts` and `src/feeds/checkpoints.ts` are both in `feeds`: tests mirror the tree. */
const layerOf = (path: string): string | undefined => path.replace(/^(?:test|src)\//, '').split('/')[0]

export const isOfLayer = (test: TestFile, file: string): boolean => layerOf(test.path) === layerOf(file)

/** Those of the tests that load the file, the nearest first. */
export const affectedBy = (file: string, tests: readonly TestFile[]): readonly string[] =>
  tests
    .filter(({ loads }) => loads.has(file))
    .toSorted((a, b) => (a.loads.get(file) ?? 0) - (b.loads.get(file) ?? 0))
    .map(({ path }) => path)
