import { expect } from 'chai'
import { compareContracts } from '../../../scripts/contract/compare.ts'
import { readReleased } from '../../../scripts/contract/released.ts'
import { differencesOf, reportOf } from '../../../scripts/contract/report.ts'
import { isBreaking, type Rule, RULES } from '../../../scripts/contract/rules.ts'
import { withChange } from './copies.ts'
import { COMPATIBLE, EDITORIAL } from './harmlessChanges.ts'
import { BREAKING } from './plantedChanges.ts'

describe('the comparison of contracts', () => {
  const released = readReleased('2026-11-01')

  it('finds nothing in an equal contract', () => {
    expect(compareContracts(released, structuredClone(released))).to.deep.equal([])
  })

  for (const planted of BREAKING)
    it(`reports as breaking that ${planted.change}`, () => {
      const breaking = compareContracts(released, withChange(released, planted)).filter(isBreaking)
      expect(breaking.map(({ rule }) => rule)).to.include(planted.rule)
    })

  for (const planted of COMPATIBLE)
    it(`lists as compatible that ${planted.change}`, () => {
      const findings = compareContracts(released, withChange(released, planted))
      expect(findings.map(({ rule }) => rule)).to.include(planted.rule)
      expect(findings.filter(isBreaking)).to.deep.equal([])
    })

  for (const [index, plant] of EDITORIAL.entries())
    it(`passes over a change that no client can notice (${index + 1})`, () => {
      const candidate = withChange(released, { change: '', rule: 'unknown-change', plant })
      expect(compareContracts(released, candidate)).to.deep.equal([])
    })

  it('has a planted change for every breaking rule', () => {
    const breaking = (Object.keys(RULES) as Rule[]).filter(rule => RULES[rule].effect === 'breaking')
    const planted = new Set(BREAKING.map(({ rule }) => rule))
    expect(breaking.filter(rule => !planted.has(rule))).to.deep.equal([])
  })

  it('names a difference in a shared schema once, with its places, the reason and the remedy', () => {
    const planted = BREAKING.find(({ change }) => change === 'a field of a response is removed')
    if (planted === undefined) throw new Error('There is no such planted change.')
    const findings = compareContracts(released, withChange(released, planted))
    const [difference, ...others] = differencesOf(findings)
    expect(others).to.deep.equal([])
    expect(difference).to.deep.include({ rule: 'field-removed', effect: 'breaking', path: 'Invoice/amount_paid' })
    expect(difference?.where).to.include.members(['GET /invoices/{id} 200', 'POST /invoices 201'])
    const text = reportOf({ version: '2026-11-01', findings })
    expect(text).to.match(/^2026-11-01: 1 breaking difference, 0 compatible differences\n/)
    expect(text).to.include('The field amount_paid is removed. Released clients send or read this field.')
    expect(text).to.include('A breaking change needs a new version')
  })
})
