import { readFile } from 'node:fs/promises'

/** The licences of the production dependencies, as package-lock.json has them. */

export type LicensedPackage = { readonly name: string; readonly version: string; readonly licence: string }

/** SPDX ids of licences that permit use in a service and its redistribution with a notice. A new one is a decision. */
export const PERMITTED: ReadonlySet<string> = new Set(['Apache-2.0', 'BlueOak-1.0.0', 'BSD-3-Clause', 'ISC', 'MIT'])

/** Packages that state their licence in a file alone, which is named here. */
export const STATED_ELSEWHERE: Readonly<Record<string, { readonly licence: string; readonly file: string }>> = {
  limiter: { licence: 'MIT', file: 'node_modules/limiter/LICENSE.txt' },
}

type LockedPackage = { readonly version?: string; readonly license?: string; readonly dev?: boolean }

/** The production packages of a lock file, each version once, optional ones included. */
export const licencesIn = (packages: Readonly<Record<string, LockedPackage>>): readonly LicensedPackage[] => {
  const production = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  const all = production.map(([path, { version = '', license }]): [string, LicensedPackage] => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const licence = license ?? STATED_ELSEWHERE[name]?.licence ?? 'no licence'
    return [`${name}@${version}`, { name, version, licence }]
  })
  return [...new Map(all).values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

export const productionLicences = async (): Promise<readonly LicensedPackage[]> => {
  const lock = await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8')
  return licencesIn((JSON.parse(lock) as { packages: Record<string, LockedPackage> }).packages)
}

/** Every part of an expression with AND has to be permitted. One with OR is a choice that somebody has to make. */
export const isPermitted = (licence: string): boolean =>
  licence
    .replace(/^\((.*)\)$/, '$1')
    .split(' AND ')
    .every(id => PERMITTED.has(id))
