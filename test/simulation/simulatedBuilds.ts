import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { Database } from '../../src/ports.ts'
import type { Build } from '../support/builds.ts'
import { principalOf, send } from './http.ts'
import { startInstance } from './instance.ts'
import { THIS_BUILD } from './machine.ts'
import { checkPorts, sharePorts } from './sharedPorts.ts'

/** The builds of which a simulated service consists: usually this one alone, or an older one as well. */

export type SimulatedBuild = {
  readonly name: string
  readonly startInstance: typeof startInstance
  readonly send: typeof send
  readonly principalOf: typeof principalOf
  readonly createLedgerTables: (database: Database) => Promise<void>
}

export const thisBuild: SimulatedBuild = { name: THIS_BUILD, startInstance, send, principalOf, createLedgerTables }

export type LoadedBuild = SimulatedBuild & {
  /** The URLs of its modules that were loaded from its folder. */
  readonly modules: ReadonlySet<string>
}

/** Where a build has its functions. */
const FUNCTIONS = [
  ['startInstance', 'test/simulation/instance.ts'],
  ['send', 'test/simulation/http.ts'],
  ['principalOf', 'test/simulation/http.ts'],
  ['createLedgerTables', 'src/feeds/ledgerTables.ts'],
] as const satisfies readonly (readonly [keyof SimulatedBuild, string])[]

/**
 * Loads the service of the sources in the folder, as the simulation in the same folder puts it together. Only its ports are
 * simulated by this build. Throws StartupError if that is not possible.
 */
export const loadBuild = async ({ name, root }: Build): Promise<LoadedBuild> => {
  const folder = await realpath(root)
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href)
  await checkPorts({ name, root: folder })
  const modules = sharePorts(folder)
  const functions: Record<string, unknown> = {}
  for (const [one, path] of FUNCTIONS) {
    const module = await load(path).catch((error: unknown) => {
      throw new StartupError(`${name} cannot run beside this build: its ${path} cannot be loaded. ${String(error)}`)
    })
    functions[one] = module[one]
    if (typeof module[one] !== 'function')
      throw new StartupError(`${name} cannot run beside this build: its ${path} has no function ${one}.`)
  }
  return { ...(functions as Omit<SimulatedBuild, 'name'>), name, modules }
}
