import { join } from 'node:path'
import { z } from 'zod'
import { SCOPES, TENANT_PATTERN } from '../../identity/principal.ts'
import { StartupError } from '../../startupError.ts'
import { type LivingFile, openLivingFile } from './watchedFile.ts'
import { editPrivate, issuerFolder, readOrCreatePrivate } from './privateFile.ts'

/** A list that operators keep in a file of the issuer: `{"<name>": [entry, …]}`, readable by its owner alone. */
export type Registry<E> = {
  /** Throws a StartupError when the file cannot be had or is not such a list; nothing in it is quoted. */
  readonly load: (dataDir: string) => Promise<readonly E[]>
  /** Puts what `change` makes of the list in its place. Whatever it throws leaves the list as it is. */
  readonly edit: (dataDir: string, change: (entries: readonly E[]) => readonly E[]) => Promise<void>
  readonly open: (dataDir: string, onError: (error: unknown) => void) => Promise<LivingFile<readonly E[]>>
}

export type RegistryOptions<E> = {
  readonly name: string
  readonly entry: z.ZodType<E>
  readonly idOf: (entry: E) => string
  /** What a fresh data directory begins with. */
  readonly initial: () => readonly E[]
}

export const tenantSchema = z.string().regex(TENANT_PATTERN)

export const scopesSchema = z
  .string()
  .refine(text => text.split(' ').every(scope => SCOPES.some(known => known === scope)), 'names an unknown scope')

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
      // Of zod only the paths are told: the values may be secrets.
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
    open: (dataDir, onError) => openLivingFile(join(issuerFolder(dataDir), fileName), () => load(dataDir), onError),
  }
}
