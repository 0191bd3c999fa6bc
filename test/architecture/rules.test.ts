import { expect } from 'chai'
import {
  AGGREGATE_FILES,
  inexactVersions,
  unexpectedEntries,
  undeclaredPackages,
  differingFolders,
  unlistedFolders,
} from './repository.ts'
import { importCycles } from './cycles.ts'
import { importViolations } from './importRules.ts'
import { missingFiles, missingFolders, missingMapNames } from './namedFiles.ts'
import { codeOf, commentsOf, functionsOf, importsOf } from './source.ts'
import { forbiddenWords, rules } from './style.ts'

/** Tests of the architecture rules: each rule reports a violation, and permits its nearest legal neighbour. */

const lines = (count: number, line = 'step()'): string => `${line}\n`.repeat(count)
const inFunction = (body: string): string => `export const long = (): void => {\n${body}}\n`

/** For each rule: a path, a text that violates it there, and the nearest text that does not. */
const examples: Readonly<Record<keyof typeof rules, readonly [path: string, bad: string, good: string]>> = {
  fileLength: ['src/a.ts', lines(401), lines(400)],
  functionLength: ['src/a.ts', inFunction(lines(39)), inFunction(lines(38))],
  parameterCount: [
    'src/a.ts',
    'const f = (a: A, b: B<C, D>, c, d, e) => 1',
    'const f = (a: A<B, C>, { b, c }, d, [e]) => 1',
  ],
  noSkippedTests: ['test/a.test.ts', "it.skip('x', y)", "it('it.skip(', y)"],
  noTestsImported: ['test/a.test.ts', "import { x } from './b.test.ts'", "import { x } from './b.ts'"],
  oneTimeLimit: ['test/a.test.ts', 'this.timeout(60_000)', "'this.timeout(1)'"],
  noUnfinishedWork: ['src/a.ts', `// ${forbiddenWords.later}: more`, '// Nothing to do.'],
  noUnexplainedAny: ['src/a.ts', 'const a: any = 1', '// Any JSON of the caller.\nconst a: any = 1'],
  noUnsafeCasts: ['src/a.ts', 'const a = b as unknown as C', 'const a: unknown = b as C'],
  noIgnoredResults: ['src/a.ts', '  await handle(ledger, x)', '  const a = await handle(ledger, x)'],
  erasableOnly: ['src/a.ts', 'export enum Colour { Red }', 'export const enumerated = 1'],
  environmentReadOnce: ['src/http/a.ts', "const port = process.env['PORT']", '// process.env is read in config.ts'],
  pureLayers: ['streams/a.ts', "import { x } from 'node:crypto'", "import { x } from 'zod'"],
  noDefaultBranch: [
    'streams/a/decider.ts',
    'switch (x) { default: return 1 }',
    "switch (x) { case 'default': return 1 }",
  ],
  plainNames: ['src/http/orderHelper.ts', '', ''],
  noAbsolutePaths: ['src/a.ts', `open('${forbiddenWords.home}me/x')`, "open('/homes')"],
}

describe('the architecture rules', () => {
  for (const [name, rule] of Object.entries(rules))
    it(`report violations of ${name} only`, () => {
      const [path, bad, good] = examples[name] ?? []
      if (path === undefined || bad === undefined || good === undefined) return expect.fail(`No example for ${name}.`)
      expect(rule({ path, text: bad })).to.have.length(1)
      expect(rule({ path: name === 'plainNames' ? 'src/http/resources/orders.ts' : path, text: good })).to.deep.equal(
        [],
      )
    })

  it('permit functions of 41 to 70 lines with a reason above them or in their first lines', () => {
    const above = (count: number): string => `// Long because it is an example.\n${inFunction(lines(count))}`
    const within = (count: number): string => inFunction(`  // Long because it is an example.\n${lines(count)}`)
    const violationsIn = (text: string): string[] => rules['functionLength']?.({ path: 'src/a.ts', text }) ?? []
    expect([68, 69].map(count => violationsIn(above(count)).length)).to.deep.equal([0, 1])
    expect([67, 68].map(count => violationsIn(within(count)).length)).to.deep.equal([0, 1])
    expect(violationsIn(`// Long because of others.\nstep()\n${inFunction(lines(60))}`)).to.have.length(1)
  })

  const forbidden: readonly (readonly [path: string, text: string])[] = [
    ['streams/order/decider.ts', "import { x } from '../invoice/index.ts'"],
    ['streams/order/decider.ts', "import type { x } from '../invoice/index.ts'"],
    ['streams/order/decider.ts', "import { x } from '../index.ts'"],
    ['streams/order/decider.ts', "import { x } from '../../src/ports.ts'"],
    ['streams/order/facts.ts', "export { x } from 'pg'"],
    ['streams/money.ts', "import 'node:fs'"],
    ['projections/orders/projection.ts', "import { Pool } from 'pg'"],
    ['projections/orders/projection.ts', "import { x } from '../../streams/order/decider.ts'"],
    ['projections/orders/queries.ts', "import { x } from '../../src/ports.ts'"],
    ['src/ports.ts', "import { money } from '../streams/money.ts'"],
    ['src/commands/commandHandler.ts', "import { Pool } from 'pg'"],
    ['src/commands/commandHandler.ts', "import { x } from '../feeds/run.ts'"],
    ['src/commands/commandHandler.ts', "import { x } from '../adapters/postgres/database.ts'"],
    ['src/feeds/feedLoop.ts', "import { x } from '../commands/commandHandler.ts'"],
    ['src/feeds/feedLoop.ts', "const x = await import('../adapters/kafka/factBus.ts')"],
    ['src/processes/paymentRecovery.ts', "import { x } from '../http/route.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../adapters/postgres/database.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../compose/service.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../feeds/feedLoop.ts'"],
    ['src/http/resources/orders.ts', "import jwt from 'jsonwebtoken'"],
    ['src/http/resources/orders.ts', "import { x } from '../server/app.ts'"],
    ['src/http/resources/paging.ts', "import { x } from './orders.ts'"],
    ['src/http/resources/events/events.ts', "import { x } from '../orders.ts'"],
    ['src/http/response/respond.ts', "import { x } from '../access/challenge.ts'"],
    ['src/http/request/position.ts', "import type { X } from '../resources/commonSchemas.ts'"],
    ['src/http/problems/problemCatalogue.ts', "import type { X } from '../route.ts'"],
    ['src/http/services.ts', "import type { X } from './route.ts'"],
    ['src/http/route.ts', "import type { X } from './resources/orders.ts'"],
    ['src/http/server/app.ts', "import { x } from '../index.ts'"],
    ['src/http/stray.ts', ''],
    ['src/http/elsewhere/orders.ts', ''],
    ['src/identity/tokenVerifier.ts', "import { x } from '../http/route.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from '../postgres/database.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { Pool } from 'pg'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from '../../../streams/money.ts'"],
    ['src/adapters/redis.ts', ''],
    ['src/embedded/startEmbedded.ts', "import { x } from '../http/route.ts'"],
    ['src/embedded/startEmbedded.ts', "import { x } from '../../streams/money.ts'"],
    ['src/childProcesses/supervisor.ts', "import { x } from '../embedded/startEmbedded.ts'"],
    ['src/lib/clockAndRandomness.ts', "import { x } from '../settings/config.ts'"],
    ['src/console/api.ts', "import { x } from '../http/route.ts'"],
    ['src/console/api.ts', "import { x } from 'node:fs'"],
    ['src/console/api.ts', "import { x } from '../../scripts/client/src/generated.ts'"],
    ['src/stray.ts', ''],
    ['lib/stray.ts', ''],
    ['scripts/demo/main.ts', "import { x } from '../../src/http/route.ts'"],
    ['scripts/bench/main.ts', "import { x } from '../../test/support/client.ts'"],
  ]
  for (const [path, text] of forbidden)
    it(`do not permit ${text || 'any file'} in ${path}`, () =>
      expect(importViolations({ path, text })).to.have.length(1))

  const permitted: readonly (readonly [path: string, text: string])[] = [
    [
      'streams/order/decider.ts',
      "import { x } from './events.ts'\nimport { z } from 'zod'\nimport { y } from '../money.ts'",
    ],
    ['projections/listQueries.ts', "import type { QueryResultRow } from 'pg'"],
    ['projections/listQueries.ts', "import { type QueryResultRow, type Pool } from 'pg'"],
    ['src/ports.ts', "import type { Money } from '../streams/money.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from './client.ts'\nimport { Kafka } from 'kafkajs'"],
    ['src/http/response/respond.ts', "import type { X } from '../route.ts'\nimport { y } from './contentCoding.ts'"],
    [
      'src/console/api.ts',
      "import type { Order } from '../../scripts/client/src/generated.ts'\nimport { html } from 'lit'",
    ],
    ['src/commands/commandHandler.ts', "// import { Pool } from 'pg'\nconst text = `\\nimport { Pool } from 'pg'`"],
  ]
  for (const [path, text] of permitted)
    it(`permit ${JSON.stringify(text)} in ${path}`, () => expect(importViolations({ path, text })).to.deep.equal([]))

  it('report an unexpected entry at the top level, also a folder whose name begins with a dot', () =>
    expect(unexpectedEntries(['src', 'lib', 'notes.md', '.ci', '.gitignore'])).to.deep.equal(['lib', 'notes.md']))

  it('report a folder whose files differ from those of its neighbours', () =>
    expect(
      differingFolders(
        ['streams/index.ts', ...AGGREGATE_FILES.slice(1).map(name => `streams/a/${name}`), 'streams/a/extra.ts'],
        AGGREGATE_FILES,
      ),
    ).to.deep.equal(['streams/a lacks decider.ts', 'streams/a has extra.ts beside the common files']))

  it('report a folder that the index lacks', () =>
    expect(
      unlistedFolders(['streams/ids.ts', 'streams/a/index.ts', 'streams/b/index.ts'], {
        path: 'streams/index.ts',
        text: "import { a } from './a/index.ts'",
      }),
    ).to.deep.equal(['b']))

  it('report a version that is not exact', () =>
    expect(
      inexactVersions({
        dependencies: { a: '^1.2.3', b: '1.2.3-beta.1' },
        devDependencies: { c: '~1.0.0', d: 'latest' },
        optionalDependencies: { e: '>=1' },
      }),
    ).to.deep.equal(['a ^1.2.3', 'c ~1.0.0', 'd latest', 'e >=1']))

  it('report an undeclared package, and a development dependency in the image', () => {
    const manifest = { dependencies: { zod: '1.0.0', '@scope/a': '1.0.0' }, devDependencies: { chai: '1.0.0' } }
    const text =
      "import { z } from 'zod/v4'\nimport 'node:fs'\nimport '@scope/a/deep.js'\nimport { expect } from 'chai'\nimport 'left-pad'"
    expect(undeclaredPackages({ path: 'src/a.ts', text }, manifest)).to.deep.equal([
      'chai is not declared',
      'left-pad is not declared',
    ])
    expect(undeclaredPackages({ path: 'test/a.ts', text }, manifest)).to.deep.equal(['left-pad is not declared'])
  })

  it('report an optional dependency outside the embedded services, since the image lacks it', () => {
    const manifest = { optionalDependencies: { 'oidc-provider': '1.0.0' } }
    const undeclaredIn = (path: string): readonly string[] =>
      undeclaredPackages({ path, text: "import 'oidc-provider'" }, manifest)
    expect(undeclaredIn('src/http/a.ts')).to.deep.equal(['oidc-provider is not declared'])
    expect([...undeclaredIn('src/embedded/issuer/a.ts'), ...undeclaredIn('test/a.ts')]).to.deep.equal([])
  })
})

describe('the search for import cycles', () => {
  const source = (path: string, text: string) => ({ path, text })

  it('finds a cycle of any length, by imports of types too', () =>
    expect(
      importCycles([
        source('src/start.ts', "import { a } from './a.ts'"),
        source('src/a.ts', "import { b } from './b.ts'"),
        source('src/b.ts', "import type { C } from './c.ts'\nimport { d } from './d.ts'"),
        source('src/c.ts', "import { a } from './a.ts'"),
        source('src/d.ts', "import { z } from 'zod'"),
      ]),
    ).to.deep.equal([['src/a.ts', 'src/b.ts', 'src/c.ts']]))

  it('finds none where two files import a third', () =>
    expect(
      importCycles([
        source('src/a.ts', "import { b } from './b.ts'\nimport { c } from './c.ts'"),
        source('src/b.ts', "import { c } from './c.ts'"),
        source('src/c.ts', ''),
      ]),
    ).to.deep.equal([]))
})

describe('the search for names of missing files', () => {
  const paths = ['README.md', 'src/http/route.ts', 'src/http/versions/index.ts', 'streams/order/events.ts']

  it('finds files by their whole path or the end of it', () => {
    const text =
      'See http/route.ts, events.ts, README.md; gone.ts and http/gone.sql are gone, streams/<any>/facts.ts is none.'
    expect(missingFiles(text, paths)).to.deep.equal(['gone.ts', 'http/gone.sql'])
  })

  it('finds folders by their path, and by their name in a map', () => {
    const text = 'In `src/http/versions` or `src/gone`:\n\nsrc/\n  versions/ gone/   dated · order/ one\n'
    expect(missingFolders(text, paths)).to.deep.equal(['src/gone', 'gone'])
  })

  it('finds names of several words in a map', () => {
    const text = '```sh\nrun\n```\nand elsewhere otherWords\n```\nroute, goneFile (orders)\n```\n'
    expect(missingMapNames(text, paths)).to.deep.equal(['goneFile'])
  })
})

describe('the source reader', () => {
  it('removes comments and strings and keeps every line and column', () => {
    const text =
      "const a = 'x' // y\nconst b = /[/'\"]+/.test(c) /* z\n */ + d / e / f\nconst g = `h ${i['j']} k` + l\n"
    const code = codeOf(text)
    expect(code).to.have.length(text.length)
    expect(code.split('\n')).to.have.length(text.split('\n').length)
    expect(code.replaceAll(/\s+/g, ' ').trim()).to.equal('const a = const b = .test(c) + d / e / f const g = + l')
  })

  it('finds comments, joins consecutive lines of them, and distinguishes them from strings', () => {
    const text = "/** a\n * b\n */\nconst c = '// d' // e\n// f\nconst g = `/* h */`\n// i\n"
    expect(commentsOf(text)).to.deep.equal([
      { line: 1, lastLine: 3, text: 'a\nb' },
      { line: 4, lastLine: 5, text: 'e\nf' },
      { line: 7, lastLine: 7, text: 'i' },
    ])
  })

  it('finds every form of import', () => {
    const text = `
import a, { type B } from './b.ts'
import type { C } from '../c.ts'
import {
  type D,
  type E,
} from 'pkg/deep'
import './side.ts'
export { f } from '@scope/pkg/deep'
export type * from './g.ts'
const h = await import('node:fs')
`
    expect(importsOf({ path: 'src/x/a.ts', text }).map(({ target, typeOnly }) => [target, typeOnly])).to.deep.equal([
      ['src/x/b.ts', false],
      ['src/c.ts', true],
      ['pkg', true],
      ['src/x/side.ts', false],
      ['@scope/pkg', false],
      ['src/x/g.ts', true],
      ['node:fs', false],
    ])
  })

  it('measures functions, methods and arrow functions, and nothing else', () => {
    const text = `
export const a = async (b: B, c = { d: 1 }): Promise<void> => {
  if (b) {
    call(1, 2, 3, 4, 5)
  }
}
function e<T>(f: T, g: (h: T, i: T) => void) {
  return f
}
const j = { k(l: string, m: number): void {
} }
const n = (o: O) => o.p(1, 2, 3, 4, 5, 6)
`
    expect(functionsOf(text)).to.deep.equal([
      { line: 2, lines: 5, parameters: 2 },
      { line: 7, lines: 3, parameters: 2 },
      { line: 7, lines: 1, parameters: 2 },
      { line: 10, lines: 2, parameters: 2 },
      { line: 12, lines: 1, parameters: 1 },
    ])
  })
})
