import { expect } from 'chai'
import fc from 'fast-check'
import type { Api } from '../../../scripts/ledger/consume/api.ts'
import { differencesIn } from '../../../scripts/ledger/consume/differences.ts'
import { digestOf, type Entry, entryOf, type Fact, inOrder, type Range } from '../../../scripts/ledger/consume/fact.ts'
import { breadth } from '../../support/breadth.ts'

/** Property tests of the search for differences, with random facts and losses; a list takes the place of the service. */

const TOPIC = 'ledger.order.v1'
const FACTS_MAX = 400
const RUNS = breadth(60, 300)

const factAt = (position: number, id = `id-${position}`): Fact => ({
  id,
  source: '/payment-ledger',
  type: 'order.created',
  subject: 'ord_x',
  partitionkey: 'ord_x',
  sequence: String(position).padStart(20, '0'),
  position: String(position),
  tenantid: 'acme',
  data: {},
})

const serviceOf = (facts: readonly Fact[]) => {
  let calls = 0
  let listed = 0
  const inRange = ({ from, to }: Range) =>
    facts.filter(({ position }) => BigInt(position) >= from && BigInt(position) <= to)
  const api: Api = {
    page: () => Promise.reject(new Error('No request for a page is expected.')),
    manifest: async (_, range) => {
      calls += 1
      return digestOf(inRange(range).map(entryOf))
    },
    manifests: () => {
      throw new Error('No request for a whole proof is expected.')
    },
    facts: async function* (range) {
      const target = inRange(range)
      listed += target.length
      yield* target
    },
  }
  return { api, asked: () => calls, listed: () => listed }
}

const positions = fc.uniqueArray(fc.nat({ max: 600 }), { maxLength: FACTS_MAX, size: 'max' })
const ids = (entries: readonly Entry[]): string[] => entries.map(({ id }) => id).toSorted()

describe('the search for differences of a copy', () => {
  it(`finds exactly the missing and surplus facts, in ${RUNS} random cases`, () =>
    fc.assert(
      fc.asyncProperty(
        positions,
        fc.infiniteStream(fc.nat({ max: 9 })),
        fc.nat({ max: 600 }),
        async (all, choices, to) => {
          const facts = all.toSorted((a, b) => a - b).map(position => factAt(position))
          const missing: string[] = []
          const surplus: string[] = []
          const copy = facts.flatMap(fact => {
            const isInRange = Number(fact.position) <= to
            const choice = choices.next().value
            if (choice === 0) {
              if (isInRange) missing.push(fact.id)
              return []
            }
            const extra = choice === 1 ? factAt(Number(fact.position), `extra-${fact.id}`) : fact
            if (choice > 2) return [fact]
            if (isInRange) surplus.push(extra.id)
            return [fact, extra]
          })
          const { api } = serviceOf(facts)
          const entries = inOrder(copy.map(entryOf))
          const differences = await differencesIn(api, TOPIC, { from: 0n, to: BigInt(to) }, entries)
          expect(ids(differences.missing)).to.deep.equal(missing.toSorted())
          expect(ids(differences.surplus)).to.deep.equal(surplus.toSorted())
        },
      ),
      { numRuns: RUNS },
    ))

  it('terminates when the copy has one fact a hundred times', async () => {
    const { api } = serviceOf([factAt(7)])
    const entries = Array.from({ length: 100 }, () => entryOf(factAt(7)))
    const differences = await differencesIn(api, TOPIC, { from: 0n, to: 1_000n }, entries)
    expect([differences.missing.length, differences.surplus.length]).to.deep.equal([0, 99])
  })

  it('makes few requests when one fact is missing', async () => {
    const facts = Array.from({ length: 10_000 }, (_, n) => factAt(7 * n))
    const { api, asked: requested, listed } = serviceOf(facts)
    const entries = facts.filter((_, n) => n !== 4_711).map(entryOf)
    const differences = await differencesIn(api, TOPIC, { from: 0n, to: 2n ** 40n }, entries)
    expect(ids(differences.missing)).to.deep.equal(['id-32977'])
    // Two requests for each halving, down to a range of fifty facts.
    expect(requested()).to.be.at.most(2 * 40)
    expect(listed()).to.be.at.most(50)
  })
})
