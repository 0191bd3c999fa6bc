import { importsOf, type Source } from './source.ts'

/**
 * Import cycles, each as the list of its files; imports of types count too, because files that need each other's types cannot
 * be read one after the other.
 */
export const importCycles = (sources: readonly Source[]): string[][] => {
  const targets = new Map(sources.map(source => [source.path, importsOf(source).map(({ target }) => target)]))
  const finished = new Set<string>()
  const cycles: string[][] = []

  /** Depth first: an import of a file on the current path closes a cycle. */
  const visit = (path: string, before: readonly string[]): void => {
    if (before.includes(path)) return void cycles.push(before.slice(before.indexOf(path)))
    if (finished.has(path)) return
    for (const target of targets.get(path) ?? []) if (targets.has(target)) visit(target, [...before, path])
    finished.add(path)
  }

  for (const path of targets.keys()) visit(path, [])
  return cycles
}
