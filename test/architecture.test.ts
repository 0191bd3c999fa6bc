import { expect } from 'chai'
import {
  AGGREGATE_FILES,
  filesUnder,
  inexactVersions,
  PROJECTION_FILES,
  sourceOf,
  sources,
  unexpectedEntries,
  topLevel,
  undeclaredPackages,
  differingFolders,
  unlistedFolders,
  UPCASTERS,
} from './architecture/repository.ts'
import { importCycles } from './architecture/cycles.ts'
import { importViolations } from './architecture/importRules.ts'
import { missingFiles, missingFolders, missingMapNames } from './architecture/namedFiles.ts'
import { commentsOf, importsOf, type Source } from './architecture/source.ts'
import { fileLength, rules } from './architecture/style.ts'

/** Checks the sources against the architecture rules. Violations of each rule are examples in architecture/rules.test.ts. */

const all = sources()

const violations = (check: (source: Source) => readonly string[]): string[] =>
  all.flatMap(source => check(source).map(violation => `${source.path}: ${violation}`))

const importers = (name: string): string[] =>
  all
    .filter(({ path }) => path.startsWith('src/'))
    .filter(source => importsOf(source).some(({ target }) => target === name))
    .map(({ path }) => path)

describe('the repository', () => {
  it('imports only as the import rules permit', () => expect(violations(importViolations)).to.deep.equal([]))

  it('has no import cycle', () => expect(importCycles(all)).to.deep.equal([]))

  for (const [name, rule] of Object.entries(rules))
    it(`follows the rule ${name}`, () => expect(violations(rule)).to.deep.equal([]))

  it('follows the rule fileLength in tables and styles', () =>
    expect(
      filesUnder('')
        .filter(path => /\.(?:sql|css)$/.test(path))
        .map(sourceOf)
        .flatMap(fileLength),
    ).to.deep.equal([]))

  it('has only the fixed entries at its top level', () => expect(unexpectedEntries(topLevel())).to.deep.equal([]))

  it('has the same files in each aggregate and in each projection', () => {
    const ofEach = filesUnder('streams').filter(path => !path.endsWith(`/${UPCASTERS}`))
    expect(differingFolders(ofEach, AGGREGATE_FILES)).to.deep.equal([])
    expect(differingFolders(filesUnder('projections'), PROJECTION_FILES)).to.deep.equal([])
  })

  it('lists every aggregate and every projection', () => {
    expect(unlistedFolders(filesUnder('streams'), sourceOf('streams/index.ts'))).to.deep.equal([])
    expect(unlistedFolders(filesUnder('projections'), sourceOf('projections/index.ts'))).to.deep.equal([])
  })

  it('has its tables in src/schema and projections, and its advisory locks in src/schema', () => {
    const outside = all.filter(({ path }) => /^src\/(?!schema\/)/.test(path))
    const creates = outside.filter(({ text }) => /create\s+(?:unlogged\s+)?table/i.test(text)).map(({ path }) => path)
    const tables = filesUnder('.').filter(path => /^(?!src\/schema\/|projections\/).*\.sql$/.test(path))
    const locks = outside.filter(({ text }) =>
      /pg_(?:try_)?advisory_(?:xact_)?lock\((?!\$1|hashtextextended\(\$1)/.test(text),
    )
    expect({ creates, tables, locks }).to.deep.equal({ creates: [], tables: [], locks: [] })
  })

  it('has every file and folder that its documents and comments name', () => {
    const paths = filesUnder('')
    const inDocuments = ['README.md', 'CONTRIBUTING.md', '.github/SECURITY.md'].flatMap(path => {
      const { text } = sourceOf(path)
      const checks = [missingFiles, missingFolders, missingMapNames]
      return checks.flatMap(check => check(text, paths)).map(name => `${path}: ${name}`)
    })
    const inComments = violations(({ text }) => commentsOf(text).flatMap(comment => missingFiles(comment.text, paths)))
    expect([...inDocuments, ...inComments]).to.deep.equal([])
  })

  it('imports jsonwebtoken in one file', () => expect(importers('jsonwebtoken')).to.have.length(1))

  describe('dependencies', () => {
    const manifest = JSON.parse(sourceOf('package.json').text) as Parameters<typeof inexactVersions>[0]

    it('have exact versions', () => expect(inexactVersions(manifest)).to.deep.equal([]))
    it('are declared', () => expect(violations(source => undeclaredPackages(source, manifest))).to.deep.equal([]))
  })
})
