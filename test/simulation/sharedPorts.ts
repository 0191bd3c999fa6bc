import { registerHooks } from 'node:module'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StartupError } from '../../src/lib/startupError.ts'
import * as ports from '../../src/ports.ts'
import type { Build } from '../support/builds.ts'

/**
 * The simulated servers of this build throw errors of the classes in `src/ports.ts`, which the service tells apart by
 * `instanceof`. So a build beside this one gets the classes of this one, and nothing else of it.
 */

const PORTS = 'src/ports.ts'

/** From here on the modules below `root` get the ports of this build. Returns the URLs of its modules, as they are loaded. */
export const sharePorts = (root: string): ReadonlySet<string> => {
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

/** Throws StartupError if the build in this folder exports other values from its ports, so that it could not take these. */
export const checkPorts = async ({ name, root }: Build): Promise<void> => {
  const ours: Readonly<Record<string, unknown>> = ports
  // The query tells them from the shared ones.
  const theirs: Readonly<Record<string, unknown>> = await import(`${pathToFileURL(join(root, PORTS)).href}?own`)
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)])
  const differing = [...names].filter(one => String(ours[one]) !== String(theirs[one]))
  if (differing.length > 0)
    throw new StartupError(
      `${name} cannot run beside this build in one simulation: their ${PORTS} differ in ${differing.join(', ')}, and both must ` +
        'share one. Rehearse this upgrade in real time: npm run upgrade -- --help',
    )
}
