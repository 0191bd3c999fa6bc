import { openApiOf } from '../src/http/contract/openapi.ts'
import { routes, VERSIONS } from '../src/http/index.ts'

/**
 * `node scripts/contract.ts [version]` prints openapi.json of a version (the oldest by default) without starting the service,
 * for diffs, generators and CI. Exit code 1, with one sentence per violation, if a reference in it cannot be resolved.
 */

const version = VERSIONS.find(one => one === (process.argv[2] ?? VERSIONS[0]))
if (version === undefined) throw new Error(`The versions are ${VERSIONS.join(', ')}.`)
const document: unknown = openApiOf(routes, version)

const referencesIn = (node: unknown): string[] => {
  if (node === null || typeof node !== 'object') return []
  return Object.entries(node).flatMap(([name, inner]) =>
    name === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner),
  )
}

const targetOf = (reference: string): unknown =>
  reference
    .split('/')
    .slice(1)
    .map(name => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((node, name) => Object.entries(node ?? {}).find(([key]) => key === name)?.[1], document)

const broken = new Set(referencesIn(document).filter(reference => targetOf(reference) === undefined))
for (const reference of broken) process.stderr.write(`Nothing is at ${reference}.\n`)
if (broken.size > 0) process.exitCode = 1
else process.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
