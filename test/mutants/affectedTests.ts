import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { importsOf } from '../architecture/source.ts'

/** The tests that load a file, found by the imports in the sources: no other test can notice a bug in the file. */

/** The number of imports between a file and each file that it loads. */
export type Distances = ReadonlyMap<string, number>

/** Any quoted relative path counts: a program that a test starts as a process is named by its path and not imported. */
const QUOTED_PATH = /'(?<path>\.{1,2}\/[\w./]+\.ts)'/g

const loadedFilesOf = (folder: string, path: string): readonly string[] => {
  const text = readFileSync(join(folder, path), 'utf8')
  const imports = importsOf({ path, text })
  const isErased = (named: string): boolean =>
    imports.some(({ specifier }) => specifier === named) &&
    imports.every(({ specifier, typeOnly }) => specifier !== named || typeOnly)
  return [...text.matchAll(QUOTED_PATH)]
    .map(({ groups }) => groups?.['path'] ?? '')
    .filter(specifier => !isErased(specifier))
    .map(specifier => posix.join(posix.dirname(path), specifier))
}

/** The distances from any file of the folder. Each source is read once, however many tests load it. */
export const createDistances = (folder: string): ((from: string) => Distances) => {
  const isSource = new Set(globSync('{src,streams,projections,scripts,test}/**/*.ts', { cwd: folder }))
  const loadedFiles = new Map<string, readonly string[]>()
  const loadedBy = (path: string): readonly string[] => {
    const cached = loadedFiles.get(path) ?? loadedFilesOf(folder, path).filter(actual => isSource.has(actual))
    loadedFiles.set(path, cached)
    return cached
  }
  return from => {
    const distances = new Map([[from, 0]])
    for (const [path, distance] of distances)
      for (const actual of loadedBy(path)) if (!distances.has(actual)) distances.set(actual, distance + 1)
    return distances
  }
}

/** Tests that load this file start processes, such as a Postgres server, which takes seconds. */
const STARTS_PROCESSES = 'src/childProcesses/childProcess.ts'

export type TestFile = { readonly path: string; readonly loads: Distances }

export const startsProcesses = ({ loads }: TestFile): boolean => loads.has(STARTS_PROCESSES)

/** Tests mirror the tree: `test/feeds/parking.test.ts` and `src/feeds/checkpoints.ts` are both of the layer `feeds`. */
const layerOf = (path: string): string | undefined => path.replace(/^(?:test|src)\//, '').split('/')[0]

/** Whether the test is for the layer of the file, or imports the file itself. */
export const isFor = (test: TestFile, file: string): boolean =>
  layerOf(test.path) === layerOf(file) || test.loads.get(file) === 1

/** The tests that load the file, with the shortest import path first. */
export const testsAffectedBy = (file: string, tests: readonly TestFile[]): readonly string[] =>
  tests
    .filter(({ loads }) => loads.has(file))
    .toSorted((a, b) => (a.loads.get(file) ?? 0) - (b.loads.get(file) ?? 0))
    .map(({ path }) => path)
