import { Command } from 'commander'
import { readAdvisories, unacceptedOf } from './dependencies/advisories.ts'
import { isPermitted, PERMITTED, productionLicences } from './dependencies/licences.ts'
import { productionSbom } from './dependencies/sbom.ts'

/** `npm run licences`, `audit` and `sbom`: the production dependencies, their licences, and what is known against them. */

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const listLicences = async (): Promise<void> => {
  const packages = await productionLicences()
  for (const { name, version, licence } of packages) print(`${licence}\t${name}\t${version}`)
  const refused = packages.filter(({ licence }) => !isPermitted(licence))
  for (const { name, licence } of refused)
    process.stderr.write(`${name}: ${licence} is none of ${[...PERMITTED].join(', ')}.\n`)
  process.exitCode = refused.length > 0 ? 1 : 0
}

const audit = async (): Promise<void> => {
  const read = await readAdvisories()
  if ('unreachable' in read) return print(`Not checked, because the registry gives no advisories: ${read.unreachable}`)
  const unaccepted = unacceptedOf(read.advisories, new Date())
  for (const { advisory, name, severity, title, why } of unaccepted)
    print(`${severity}: ${name}: ${title} (${advisory}); ${why}`)
  print(`${read.advisories.length} advisories on production dependencies, ${unaccepted.length} not accepted.`)
  process.exitCode = unaccepted.length > 0 ? 1 : 0
}

await new Command('dependencies')
  .description('Checks the production dependencies. Exit code 1 if one is refused.')
  .addCommand(new Command('licences').description('Lists their licences: licence, name, version.').action(listLicences))
  .addCommand(new Command('audit').description('Lists the advisories that nobody has accepted.').action(audit))
  .addCommand(
    new Command('sbom')
      .description('Prints the software bill of materials, as CycloneDX.')
      .action(async () => print(JSON.stringify(await productionSbom(), null, 2))),
  )
  .parseAsync()
