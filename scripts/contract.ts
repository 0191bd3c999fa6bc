import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command } from 'commander'
import { type Version, VERSIONS } from '../src/http/index.ts'
import { compareContracts } from './contract/compare.ts'
import { type Contract, danglingReferences } from './contract/documents.ts'
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

type CheckOptions = { readonly json?: true; readonly candidate?: string; readonly lint: boolean }

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const candidateFor = (version: Version, { candidate: folder }: CheckOptions): Contract =>
  folder === undefined ? candidateOf(version) : readContract(pathToFileURL(`${resolve(folder, version)}/`))

/** Faults of the documents themselves, in sentences. The linters, which are slow to load, are loaded here. */
const faultsOf = async (version: Version, options: CheckOptions): Promise<readonly string[]> => {
  const contract = candidateFor(version, options)
  const faults = [
    ...danglingReferences(contract.openapi).map(reference => `openapi.json has nothing at ${reference}.`),
    ...danglingReferences(contract.asyncapi).map(reference => `asyncapi.json has nothing at ${reference}.`),
    ...(options.lint ? await (await import('./contract/lint.ts')).lint(contract) : []),
  ]
  return faults.map(fault => `${version}: ${fault}`)
}

const check = async (options: CheckOptions): Promise<void> => {
  const supported = releasedDates().filter(isSupported)
  const compared = supported.map(version => ({
    version,
    findings: compareContracts(readReleased(version), candidateFor(version, options)),
  }))
  const faults = editedFiles().map(file => `${file} was changed after its release; restore it.`)
  for (const version of options.candidate === undefined ? VERSIONS : supported)
    faults.push(...(await faultsOf(version, options)))
  const isOk = faults.length === 0 && !compared.some(isBroken)
  if (!isOk) process.exitCode = 1
  const unreleased = VERSIONS.filter(version => !supported.includes(version))
  if (options.json) {
    const versions = compared.map(({ version, findings }) => ({ version, differences: differencesOf(findings) }))
    return print(JSON.stringify({ ok: isOk, faults, unreleased, versions }, null, 2))
  }
  for (const comparison of compared) print(reportOf(comparison))
  for (const version of unreleased) print(`${version}: not released, so that it may still change.`)
  for (const fault of faults) print(fault)
}

const program = new Command('contract').description('The published contract: compare, lint, print and release it.')

program
  .command('check', { isDefault: true })
  .description('compare the candidate with every released contract that is still served; exit code 1 if it breaks one')
  .option('--json', 'print the differences as JSON')
  .option('--no-lint', 'do not lint the documents')
  .option('--candidate <folder>', 'documents in <folder>/<date>/ instead of those of this code')
  .action(check)

program
  .command('diff <from> <to>')
  .description('the differences between two released contracts')
  .option('--json', 'print them as JSON')
  .action((from: string, to: string, { json }: { readonly json?: true }) => {
    const findings = compareContracts(readReleased(from), readReleased(to))
    print(json ? JSON.stringify(differencesOf(findings), null, 2) : reportOf({ version: `${from} → ${to}`, findings }))
  })

program
  .command('print [version] [document]')
  .description('print openapi or asyncapi of a version, the oldest by default')
  .action((version: string = VERSIONS[0], document: string = 'openapi') => {
    const dated = VERSIONS.find(other => other === version)
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

await program.parseAsync()
