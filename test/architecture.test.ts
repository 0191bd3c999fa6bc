import { expect } from 'chai'
import {
  AGGREGATE_FILES,
  filesUnder,
  inexactVersions,
  PROJECTION_FILES,
  sourceOf,
  sources,
  strangersIn,
  topLevel,
  undeclaredPackages,
  unevenFolders,
  unlistedFolders,
} from './architecture/repository.ts'
import { importViolations } from './architecture/rooms.ts'
import { importsOf, type Source } from './architecture/source.ts'
import { rules } from './architecture/style.ts'

/** Holds the sources to the house's rules. How each rule is seen to fail is in architecture/rules.test.ts. */

const all = sources()

const violations = (check: (source: Source) => readonly string[]): string[] =>
  all.flatMap(source => check(source).map(what => `${source.path}: ${what}`))

const importers = (name: string): string[] =>
  all
    .filter(({ path }) => path.startsWith('src/'))
    .filter(source => importsOf(source).some(({ target }) => target === name))
    .map(({ path }) => path)

describe('the house', () => {
  it('imports only along its arrows', () => expect(violations(importViolations)).to.deep.equal([]))

  for (const [name, rule] of Object.entries(rules))
    it(`keeps to the rule ${name}`, () => expect(violations(rule)).to.deep.equal([]))

  it('has only what the owner fixed at its top level', () => expect(strangersIn(topLevel())).to.deep.equal([]))

  it('has the same files in each aggregate and in each projection', () => {
    expect(unevenFolders(filesUnder('streams'), AGGREGATE_FILES)).to.deep.equal([])
    expect(unevenFolders(filesUnder('projections'), PROJECTION_FILES)).to.deep.equal([])
  })

  it('lists every aggregate and every projection', () => {
    expect(unlistedFolders(filesUnder('streams'), sourceOf('streams/index.ts'))).to.deep.equal([])
    expect(unlistedFolders(filesUnder('projections'), sourceOf('projections/index.ts'))).to.deep.equal([])
  })

  it('verifies tokens with jsonwebtoken in one file', () => expect(importers('jsonwebtoken')).to.have.length(1))

  describe('depends', () => {
    const manifest = JSON.parse(sourceOf('package.json').text) as Parameters<typeof inexactVersions>[0]

    it('on exact versions', () => expect(inexactVersions(manifest)).to.deep.equal([]))
    it('on what it says it does', () =>
      expect(violations(source => undeclaredPackages(source, manifest))).to.deep.equal([]))
  })
})
