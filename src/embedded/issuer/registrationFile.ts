import { join } from 'node:path'
import { z } from 'zod'
import { SCOPES, TENANT_PATTERN } from '../../identity/principal.ts'
import { StartupError } from '../../lib/startupError.ts'
import { type WatchedFile, openWatchedFile } from './watchedFile.ts'
import { editPrivate, issuerFolder, readOrCreatePrivate } from '../privateFile.ts'

/** A list in a private file of the issuer, edited by operators: `{"<name>": [entry, …]}`. */
export type Registry<E> = {
  /** Throws a StartupError if the file cannot be read or is not such a list; its content is not quoted. */
  readonly load: (dataDir: string) => Promise<readonly E[]>
  /** Replaces the list by the result of `change`. An error of it leaves the list unchanged. */
  readonly edit: (dataDir: string, change: (entries: readonly E[]) => readonly E[]) => Promise<void>
  readonly open: (dataDir: string, onError: (error: unknown) => void) => Promise<WatchedFile<readonly E[]>>
}

export type RegistryOptions<E> = {
  readonly name: string
  readonly entry: z.ZodType<E>
  readonly idOf: (entry: E) => string
  /** The content of a fresh data directory. */
  readonly initial: () => readonly E[]
}

export const tenantSchema = z.string().regex(TENANT_PATTERN)

export const scopesSchema = z
  .string()
  .refine(text => text.split(' ').every(scope => SCOPES.some(name => name === scope)), 'names an unknown scope')

export const createRegistry = <E>({ name, entry, idOf, initial }: RegistryOptions<E>): Registry<E> => {
  const fileName = `${name}.json`
  const list = z
    .array(entry)
    .refine(entries => new Set(entries.map(idOf)).size === entries.length, 'names the same one twice')
  const textOf = (entries: readonly E[]): string => `${JSON.stringify({ [name]: entries }, undefined, 2)}\n`
  const generate = async (): Promise<string> => textOf(initial())

  const parse = (text: string): readonly E[] => {
    try {
      const content = z.strictObject({ [name]: list }).parse(JSON.parse(text))
      return content[name] ?? []
    } catch (error) {
      // Only the paths of zod's issues, because the values may be secrets.
      const places = error instanceof z.ZodError ? error.issues.map(issue => issue.path.join('.')).join(', ') : 'JSON'
      throw new StartupError(`The data directory's issuer/${fileName} is not a list of ${name} (${places}).`)
    }
  }

  const load: Registry<E>['load'] = async dataDir =>
    parse(await readOrCreatePrivate(issuerFolder(dataDir), fileName, generate))

  return {
    load,
    edit: (dataDir, change) =>
      editPrivate(issuerFolder(dataDir), fileName, generate, async content => textOf(change(parse(content)))),
    open: (dataDir, onError) => openWatchedFile(join(issuerFolder(dataDir), fileName), () => load(dataDir), onError),
  }
}
