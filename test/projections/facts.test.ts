import { expect } from 'chai'
import { facts, publishedBy } from '../../projections/facts/projection.ts'
import { aggregates } from '../../streams/index.ts'
import { applied, id, invoicePaid, orderCreated } from '../streams/samples.ts'
import { recordedAs } from './histories.ts'

describe('the projection of facts', () => {
  const [paid] = recordedAs(id('inv'), [invoicePaid(1)])
  const [created] = recordedAs(id('ord'), [orderCreated])
  const [internal] = recordedAs(id('inv'), [applied(1, 5n)])

  it('has a row for each fact, with the CloudEvent that is published', () => {
    if (paid === undefined) return expect.fail('there is no event')
    const event = publishedBy('invoice', paid)
    expect(event?.type).to.equal('invoice.paid')
    expect(facts.rows(paid)).to.deep.equal([
      { position: 1n, tenant_id: 'acme', type: 'invoice.paid', subject: id('inv'), at: paid.metadata.at, event },
    ])
  })

  it('finds the aggregate by the id of the stream', () =>
    expect(created && facts.rows(created).map(({ type }) => type)).to.deep.equal(['order.created']))

  it('has no row for an internal event', () => expect(internal && facts.rows(internal)).to.deep.equal([]))

  it('follows every category that has facts', () => {
    const announcing = Object.entries(aggregates)
      .filter(([, aggregate]) => Object.values(aggregate.facts).some(fact => fact !== 'internal'))
      .map(([category]) => category)
    expect(facts.categories).to.include.members(announcing)
  })

  it('refuses an id without an aggregate', () => {
    const [stray] = recordedAs('op_00000000000000000000000000', [orderCreated])
    expect(() => stray && facts.rows({ ...stray, id: 'x_1' })).to.throw('No aggregate has ids like x_1.')
  })
})
