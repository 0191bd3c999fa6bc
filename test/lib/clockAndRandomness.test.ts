import { expect } from 'chai'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'

const DRAWS = 2_000
const COUNTS = [1, 16, 17, 32, 64, 65, 1_000]

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

describe('the random bytes of the service', () => {
  const { randomBytes } = realWorld()

  it('are as many as were asked for', () => {
    for (const count of COUNTS) expect(randomBytes(count)).to.have.length(count)
    expect(randomBytes(0)).to.have.length(0)
  })

  it('are never given twice, by one world or by two', () => {
    const other = realWorld()
    const drawn = new Set<string>()
    for (let n = 0; n < DRAWS; n += 1)
      for (const world of [{ randomBytes }, other]) drawn.add(hexOf(world.randomBytes(16)))
    expect(drawn.size).to.equal(2 * DRAWS)
  })

  it('are the property of their receiver: later ones do not change them, nor do changes of them change later ones', () => {
    const first = randomBytes(16)
    const before = hexOf(first)
    const others = Array.from({ length: DRAWS }, () => randomBytes(16))
    expect(hexOf(first)).to.equal(before)
    for (const bytes of others) bytes.fill(0)
    for (let n = 0; n < DRAWS; n += 1) expect(hexOf(randomBytes(16))).to.not.match(/^0{16}/)
  })
})
