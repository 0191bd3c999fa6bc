import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { productionLicences } from './licences.ts'

/** The software bill of materials of the production dependencies, in CycloneDX. */

export type Sbom = {
  readonly components: readonly {
    readonly 'bom-ref': string
    readonly name: string
    readonly version: string
    readonly hashes?: readonly object[]
  }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

/**
 * `npm sbom --omit dev` also omits production packages that a development dependency uses (pg, jose, debug), so everything is
 * asked for and filtered here.
 */
const NPM_SBOM = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx']

export const productionSbom = async (): Promise<Sbom> => {
  const cwd = new URL('../../', import.meta.url)
  const { stdout } = await promisify(execFile)('npm', NPM_SBOM, { cwd, maxBuffer: 64 * 2 ** 20 })
  const all = JSON.parse(stdout) as Sbom
  const production = new Set((await productionLicences()).map(({ name, version }) => `${name}@${version}`))
  const components = all.components.filter(({ name, version }) => production.has(`${name}@${version}`))
  const kept = new Set(components.map(component => component['bom-ref']))
  const others = new Set(all.components.map(component => component['bom-ref']).filter(ref => !kept.has(ref)))
  const dependencies = all.dependencies
    .filter(({ ref }) => !others.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(one => !others.has(one)) }))
  return { ...all, components, dependencies }
}
