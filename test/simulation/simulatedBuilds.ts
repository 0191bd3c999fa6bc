import { realpath } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import * as ports from '../../src/ports.ts'
import type { Database } from '../../src/ports.ts'
import type { Build } from '../support/builds.ts'
import { principalOf, send } from './http.ts'
import { startInstance } from './instance.ts'
import { THIS_BUILD } from './machine.ts'

/** The builds of which a simulated service consists: usually this one alone, or an older one as well. */

export type SimulatedBuild = {
  readonly name: string
  readonly startInstance: typeof startInstance
  readonly send: typeof send
  readonly principalOf: typeof principalOf
  readonly createTables: (database: Database) => Promise<void>
}

export const thisBuild: SimulatedBuild = {
  name: THIS_BUILD,
  startInstance,
  send,
  principalOf,
  createTables: createLedgerTables,
}

export type LoadedBuild = SimulatedBuild & {
  /** The URLs of its modules that were loaded from its folder. */
  readonly modules: ReadonlySet<string>
}

const PORTS = 'src/ports.ts'

/**
 * The simulated servers of this build throw errors of the classes in `src/ports.ts`, which the service tells apart by
 * `instanceof`. So both builds get the classes of this one, and nothing else of it. Returns the loaded modules.
 */
const sharePorts = (root: string): ReadonlySet<string> => {
  const modules = new Set<string>()
  const folder = pathToFileURL(root + sep).href
  const own = new URL(PORTS, folder).href
  const shared = new URL(`../../${PORTS}`, import.meta.url).href
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context)
      if (resolved.url === own) return { ...resolved, url: shared }
      if (resolved.url.startsWith(folder)) modules.add(resolved.url)
      return resolved
    },
  })
  return modules
}

/** Throws StartupError if the two builds could not share the classes of this one. */
const checkPorts = (name: string, theirs: Readonly<Record<string, unknown>>): void => {
  const ours: Readonly<Record<string, unknown>> = ports
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)])
  const differing = [...names].filter(one => String(ours[one]) !== String(theirs[one]))
  if (differing.length > 0)
    throw new StartupError(
      `${name} cannot run beside this build in one simulation: their ${PORTS} differ in ${differing.join(', ')}, and both must ` +
        'share one. Rehearse this upgrade in real time: npm run upgrade -- --help',
    )
}

/**
 * Loads the service of the sources in the folder, as the simulation in the same folder puts it together. Only its ports are
 * simulated by this build. Throws StartupError if that is not possible.
 */
export const loadBuild = async ({ name, root }: Build): Promise<LoadedBuild> => {
  const folder = await realpath(root)
  const load = (path: string) => import(pathToFileURL(join(folder, path)).href)
  checkPorts(name, await import(`${pathToFileURL(join(folder, PORTS)).href}?own`))
  const modules = sharePorts(folder)
  const [instance, http, tables] = [
    await load('test/simulation/instance.ts'),
    await load('test/simulation/http.ts'),
    await load('src/feeds/ledgerTables.ts'),
  ]
  const { startInstance } = instance
  const { send, principalOf } = http
  return { name, startInstance, send, principalOf, createTables: tables.createLedgerTables, modules }
}
