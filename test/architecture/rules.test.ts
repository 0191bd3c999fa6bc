import { expect } from 'chai'
import {
  AGGREGATE_FILES,
  inexactVersions,
  strangersIn,
  undeclaredPackages,
  unevenFolders,
  unlistedFolders,
} from './repository.ts'
import { importViolations } from './rooms.ts'
import { codeOf, functionsOf, importsOf } from './source.ts'
import { forbiddenWords, rules } from './style.ts'

/** Every rule is broken here on purpose: a rule that was never seen to fail proves nothing. */

const lines = (count: number, line = 'step()'): string => `${line}\n`.repeat(count)
const inFunction = (body: string): string => `export const long = (): void => {\n${body}}\n`

/** Where it is broken, how, and what comes nearest to that and is permitted. */
const broken: Readonly<Record<keyof typeof rules, readonly [path: string, bad: string, good: string]>> = {
  fileLength: ['src/a.ts', lines(251), lines(250)],
  functionLength: ['src/a.ts', inFunction(lines(69)), inFunction(lines(68))],
  parameterCount: [
    'src/a.ts',
    'const f = (a: A, b: B<C, D>, c, d, e) => 1',
    'const f = (a: A<B, C>, { b, c }, d, [e]) => 1',
  ],
  noSkippedTests: ['test/a.test.ts', "it.skip('x', y)", "it('it.skip(', y)"],
  nothingLeftOver: ['src/a.ts', `// ${forbiddenWords.later}: more`, '// Nothing to do.'],
  noUnexplainedAny: ['src/a.ts', 'const a: any = 1', '// Whatever the caller sends.\nconst a: any = 1'],
  noHolesInTypes: ['src/a.ts', 'const a = b as unknown as C', 'const a: unknown = b as C'],
  noDroppedAnswers: ['src/a.ts', '  await handle(ledger, x)', '  const a = await handle(ledger, x)'],
  erasableOnly: ['src/a.ts', 'export enum Colour { Red }', 'export const enumerated = 1'],
  environmentReadOnce: ['src/http/a.ts', "const port = process.env['PORT']", '// process.env is read in config.ts'],
  pureRooms: ['streams/a.ts', "import { x } from 'node:crypto'", "import { x } from 'zod'"],
  noDefaultBranch: [
    'streams/a/decider.ts',
    'switch (x) { default: return 1 }',
    "switch (x) { case 'default': return 1 }",
  ],
  plainNames: ['src/http/orderHelper.ts', '', ''],
  noPathsOfThisMachine: ['src/a.ts', `open('${forbiddenWords.home}me/x')`, "open('/homes')"],
}

describe('the rules of the house', () => {
  for (const [name, rule] of Object.entries(rules))
    it(`see where ${name} is broken, and only there`, () => {
      const [path, bad, good] = broken[name] ?? []
      if (path === undefined || bad === undefined || good === undefined) return expect.fail(`Break ${name} here.`)
      expect(rule({ path, text: bad })).to.have.length(1)
      expect(rule({ path: name === 'plainNames' ? 'src/http/resources/orders.ts' : path, text: good })).to.deep.equal(
        [],
      )
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
    ['src/commands/handle.ts', "import { Pool } from 'pg'"],
    ['src/commands/handle.ts', "import { x } from '../feeds/run.ts'"],
    ['src/commands/handle.ts', "import { x } from '../adapters/postgres/database.ts'"],
    ['src/feeds/subscriptionLoop.ts', "import { x } from '../commands/handle.ts'"],
    ['src/feeds/subscriptionLoop.ts', "const x = await import('../adapters/kafka/factBus.ts')"],
    ['src/processes/paymentRecovery.ts', "import { x } from '../http/route.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../adapters/postgres/database.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../compose.ts'"],
    ['src/http/resources/orders.ts', "import { x } from '../../feeds/subscriptionLoop.ts'"],
    ['src/http/resources/orders.ts', "import jwt from 'jsonwebtoken'"],
    ['src/identity/tokens.ts', "import { x } from '../http/route.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from '../postgres/database.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { Pool } from 'pg'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from '../../../streams/money.ts'"],
    ['src/adapters/redis.ts', ''],
    ['src/embedded/child.ts', "import { x } from '../http/route.ts'"],
    ['src/embedded/child.ts', "import { x } from '../../streams/money.ts'"],
    ['src/world.ts', "import { x } from './config.ts'"],
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
    ['projections/page.ts', "import type { QueryResultRow } from 'pg'"],
    ['projections/page.ts', "import { type QueryResultRow, type Pool } from 'pg'"],
    ['src/ports.ts', "import type { Money } from '../streams/money.ts'"],
    ['src/adapters/kafka/factBus.ts', "import { x } from './client.ts'\nimport { Kafka } from 'kafkajs'"],
    ['src/commands/handle.ts', "// import { Pool } from 'pg'\nconst text = `\\nimport { Pool } from 'pg'`"],
  ]
  for (const [path, text] of permitted)
    it(`permit ${JSON.stringify(text)} in ${path}`, () => expect(importViolations({ path, text })).to.deep.equal([]))

  it('see a stranger at the top level, a dot folder too', () =>
    expect(strangersIn(['src', 'lib', 'notes.md', '.ci', '.gitignore'])).to.deep.equal(['lib', 'notes.md']))

  it('see a folder that differs from its neighbours', () =>
    expect(
      unevenFolders(
        ['streams/index.ts', ...AGGREGATE_FILES.slice(1).map(name => `streams/a/${name}`), 'streams/a/extra.ts'],
        AGGREGATE_FILES,
      ),
    ).to.deep.equal(['streams/a lacks decider.ts', 'streams/a has extra.ts beside the common files']))

  it('see a folder that is not listed', () =>
    expect(
      unlistedFolders(['streams/ids.ts', 'streams/a/index.ts', 'streams/b/index.ts'], {
        path: 'streams/index.ts',
        text: "import { a } from './a/index.ts'",
      }),
    ).to.deep.equal(['b']))

  it('see a version that is not exact', () =>
    expect(
      inexactVersions({
        dependencies: { a: '^1.2.3', b: '1.2.3-beta.1' },
        devDependencies: { c: '~1.0.0', d: 'latest' },
      }),
    ).to.deep.equal(['a ^1.2.3', 'c ~1.0.0', 'd latest']))

  it('see a package that nobody declared, and a tool of the developers in the image', () => {
    const manifest = { dependencies: { zod: '1.0.0', '@scope/a': '1.0.0' }, devDependencies: { chai: '1.0.0' } }
    const text =
      "import { z } from 'zod/v4'\nimport 'node:fs'\nimport '@scope/a/deep.js'\nimport { expect } from 'chai'\nimport 'left-pad'"
    expect(undeclaredPackages({ path: 'src/a.ts', text }, manifest)).to.deep.equal([
      'chai is no dependency',
      'left-pad is no dependency',
    ])
    expect(undeclaredPackages({ path: 'test/a.ts', text }, manifest)).to.deep.equal(['left-pad is no dependency'])
  })
})

describe('the reader of sources', () => {
  it('takes out comments and strings and leaves every line where it is', () => {
    const text =
      "const a = 'x' // y\nconst b = /[/'\"]+/.test(c) /* z\n */ + d / e / f\nconst g = `h ${i['j']} k` + l\n"
    const code = codeOf(text)
    expect(code).to.have.length(text.length)
    expect(code.split('\n')).to.have.length(text.split('\n').length)
    expect(code.replaceAll(/\s+/g, ' ').trim()).to.equal('const a = const b = .test(c) + d / e / f const g = + l')
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

  it('measures functions, methods and arrows, and nothing else', () => {
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
