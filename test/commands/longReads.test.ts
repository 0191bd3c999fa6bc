import { expect } from 'chai'
import { createPauses } from '../../src/commands/longReads.ts'
import { workFor } from '../../src/fairness/currentAccount.ts'

/** A read whose events take `eventMs` each, of a tenant that is alone or not. */
const readFor = (isAlone: boolean, eventMs: number) =>
  workFor({ tenant: 'one', caller: 'only', isAlone: () => isAlone }, () => {
    let nowMs = 0
    const sleeps: number[] = []
    const sleep = async (timeMs: number): Promise<void> => {
      sleeps.push(timeMs)
      nowMs += timeMs
    }
    const pause = createPauses({ monotonicMs: () => nowMs, sleep })
    const readOne = async (): Promise<void> => {
      nowMs += eventMs
      await pause()
    }
    return { readOne, sleeps }
  })

const read = async (isAlone: boolean, eventMs: number): Promise<number[]> => {
  const { readOne, sleeps } = readFor(isAlone, eventMs)
  for (let n = 0; n < 8; n++) await readOne()
  return sleeps
}

describe('a long read', () => {
  it('pauses three times as long as it has worked beside other tenants', async () => {
    expect(await read(false, 2)).to.deep.equal(Array(8).fill(6))
  })

  it('works a millisecond before it pauses', async () => {
    expect(await read(false, 0.25)).to.deep.equal([3, 3])
  })

  it('pauses 30 ms at most, after a slow answer of the store', async () => {
    expect(await read(false, 500)).to.deep.equal(Array(8).fill(30))
  })

  it('lets others in between, without a pause, while its tenant is alone', async () => {
    expect(await read(true, 2)).to.deep.equal(Array(8).fill(0))
  })
})
