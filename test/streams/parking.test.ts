import { expect } from 'chai'
import { parking } from '../../streams/parking/index.ts'
import { scenario } from '../support/scenario.ts'

const { given } = scenario(parking.decider)
const parked = (...positions: bigint[]) => ({ type: 'FactsParked', data: { positions } }) as const
const park = (...positions: bigint[]) => ({ type: 'ParkFacts', positions }) as const

describe('the record of parked facts', () => {
  it('has each position once', () => {
    given().when(park(5n, 9n)).expectOnce(parked(5n, 9n))
    given(parked(5n)).when(park(5n, 9n)).expectOnce(parked(9n))
    given(parked(5n), parked(9n)).when(park(9n, 5n)).expectNothing()
  })

  it('has the beginning of the replay of each run', () => {
    const begun = (run: string) => ({ type: 'ReplayBegun', data: { run } }) as const
    given(begun('a'), parked(5n)).when({ type: 'BeginReplay', run: 'b' }).expectOnce(begun('b'))
  })

  it('is stored with positions beyond the integers of a double', () => {
    const event = parked(2n ** 63n)
    const { data, schemaVersion } = parking.codec.encode(event)
    expect(data).to.deep.equal({ positions: ['9223372036854775808'] })
    expect(parking.codec.decode('FactsParked', data, schemaVersion)).to.deep.equal(event)
  })
})
