import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { VERSIONS } from '../src/http/index.ts'
import { compareContracts } from './contract/compare.ts'
import { danglingReferences, type Contract } from './contract/documents.ts'
import {
  candidateOf,
  editedFiles,
  isSupported,
  readContract,
  readReleased,
  release,
  releasedDates,
} from './contract/released.ts'
import { differencesOf, isBroken, reportOf } from './contract/report.ts'

/**
 * `npm run contract`: compares the contract that this code would publish with every released one, and prints or releases it. No
 * service is started.
 */

type CheckOptions = { readonly json?: true; readonly candidate?: string }

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const candidateFor = (version: (typeof VERSIONS)[number], folder: string | undefined): Contract =>
  folder === undefined ? candidateOf(version) : readContract(pathToFileURL(`${resolve(folder, version)}/`))

/** Faults of the documents themselves, as sentences. */
const faultsOf = (version: string, { openapi, asyncapi }: Contract): readonly string[] => [
  ...danglingReferences(openapi).map(reference => `${version}: openapi.json has nothing at ${reference}.`),
  ...danglingReferences(asyncapi).map(reference => `${version}: asyncapi.json has nothing at ${reference}.`),
]

const check = ({ json, candidate: folder }: CheckOptions): void => {
  const supported = releasedDates().filter(isSupported)
  const edited = editedFiles().map(file => `${file} was changed after its release; restore it.`)
  const compared = supported.map(version => {
    const candidate = candidateFor(version, folder)
    return {
      version,
      findings: compareContracts(readReleased(version), candidate),
      faults: faultsOf(version, candidate),
    }
  })
  const faults = [...edited, ...compared.flatMap(one => one.faults)]
  const unreleased = VERSIONS.filter(version => !supported.includes(version))
  if (faults.length > 0 || compared.some(isBroken)) process.exitCode = 1
  if (json) {
    const versions = compared.map(({ version, findings }) => ({ version, differences: differencesOf(findings) }))
    return print(JSON.stringify({ ok: process.exitCode !== 1, faults, unreleased, versions }, null, 2))
  }
  for (const one of compared) print(reportOf(one))
  for (const version of unreleased) print(`${version}: not released, so that it may still change.`)
  for (const fault of faults) print(fault)
}

const program = new Command('contract').description('The published contract: compare, print and release it.')

program
  .command('check', { isDefault: true })
  .description('compare the candidate with every released contract that is still served; exit code 1 if it breaks one')
  .option('--json', 'print the differences as JSON')
  .option('--candidate <folder>', 'documents in <folder>/<date>/ in place of those of this code')
  .action(check)

program
  .command('diff <from> <to>')
  .description('the differences between two released contracts')
  .option('--json', 'print them as JSON')
  .action((from: string, to: string, { json }: CheckOptions) => {
    const findings = compareContracts(readReleased(from), readReleased(to))
    print(json ? JSON.stringify(differencesOf(findings), null, 2) : reportOf({ version: `${from} → ${to}`, findings }))
  })

program
  .command('print [version] [document]')
  .description('print openapi or asyncapi of a version, the oldest by default')
  .action((version: string = VERSIONS[0], document: string = 'openapi') => {
    const dated = VERSIONS.find(one => one === version)
    if (dated === undefined) throw new Error(`The versions are ${VERSIONS.join(', ')}.`)
    const { openapi, asyncapi } = candidateOf(dated)
    print(JSON.stringify(document === 'asyncapi' ? asyncapi : openapi, null, 2))
  })

program
  .command('release <date>')
  .description('keep the documents of a served version as released; they never change afterwards')
  .action((date: string) => {
    for (const file of release(date)) print(`src/http/contract/released/${file}`)
  })

program.parse()
