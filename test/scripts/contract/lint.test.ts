import { expect } from 'chai'
import { lint } from '../../../scripts/contract/lint.ts'
import { candidateOf } from '../../../scripts/contract/released.ts'
import { type Node, payments, withChange } from './copies.ts'

describe('the linters of the contract', () => {
  const candidate = candidateOf('2026-11-01')
  const faults: readonly [string, (copy: { openapi: Node; asyncapi: Node }) => void, RegExp][] = [
    [
      'an example that does not fit its schema',
      copy => (payments(copy).responses['201'].content['application/json'].example.amount = 'much'),
      /example.*amount.*integer/,
    ],
    ['an operation without a description', copy => delete payments(copy).description, /description/],
    ['a scope that no security scheme has', copy => (payments(copy).security = [{ oauth: ['pay'] }]), /pay/],
    [
      'an unknown member of asyncapi.json',
      copy => (copy.asyncapi.channels.payment.topic = 'x'),
      /asyncapi\.json.*topic/,
    ],
  ]

  it('report planted faults', async () => {
    const change = {
      change: 'all faults',
      rule: 'unknown-change' as const,
      plant: (copy: { openapi: Node; asyncapi: Node }) => {
        for (const [, plant] of faults) plant(copy)
      },
    }
    const actual = (await lint(withChange(candidate, change))).join('\n')
    for (const [fault, , sentence] of faults) expect(actual, fault).to.match(sentence)
  })
})
