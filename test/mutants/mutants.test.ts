import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { actual } from '../simulation/bugs.ts'
import { withBug, ROOT } from './treeCopy.ts'
import { mutants } from './mutants.ts'

describe('the list of bugs to plant', () => {
  it('has at least 40 bugs with unique names', () => {
    expect(mutants.length).to.be.at.least(40)
    expect(new Set(mutants.map(({ name }) => name)).size).to.equal(mutants.length)
  })

  it('has a bug for each defect that the simulation has found', () => {
    expect(mutants.map(({ name }) => name)).to.include.members(actual.map(({ bug }) => bug))
  })

  for (const mutant of mutants)
    it(`has a bug whose text is found once in its file: ${mutant.name}`, async () => {
      const right = await readFile(join(ROOT, mutant.file), 'utf8')
      const wrong = withBug(right, mutant)
      expect(wrong).not.to.equal(right)
      expect(() => stripTypeScriptTypes(wrong)).not.to.throw()
    })
})
