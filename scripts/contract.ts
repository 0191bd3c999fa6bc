import { openApiOf } from '../src/http/contract/openapi.ts'
import { routes } from '../src/http/index.ts'

/**
 * `node scripts/contract.ts` prints openapi.json without starting the service, for diffs, generators and CI. Exit code
 * 1, with one sentence per violation, if a reference in it cannot be resolved.
 */

const document: unknown = openApiOf(routes)

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
