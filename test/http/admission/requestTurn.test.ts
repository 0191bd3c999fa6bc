import { expect } from 'chai'
import { createPendingBodies } from '../../../src/fairness/pendingBodies.ts'
import { anOrder } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'

describe('the turn of a request', () => {
  const sizes: number[] = []
  let variant: Variant
  before(async () => {
    const enter = async (_account: object, _signal: unknown, size = 0) => {
      sizes.push(size)
      return () => undefined
    }
    variant = await startVariant(await sharedService(), {
      admission: { turns: { tryEnter: () => undefined, enter, isAlone: () => true }, bodies: createPendingBodies() },
      authenticate: async () => caller,
    })
  })
  after(() => variant.close())
  beforeEach(() => sizes.splice(0))

  const body = JSON.stringify(anOrder())
  const large = `${body}${' '.repeat(20_000)}`

  const send = async (content: string | ReadableStream): Promise<number> => {
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json' }
    const answer = await fetch(`${variant.api}/orders`, { method: 'POST', headers, body: content, duplex: 'half' })
    await answer.arrayBuffer()
    return answer.status
  }
  const inChunks = (text: string): ReadableStream => new Blob([text]).stream()

  it('has the size 1 for a small body, and 1 more for each 4 KiB of a larger one', async () => {
    expect(await send(body)).to.equal(201)
    expect(sizes.at(-1)).to.equal(1)
    expect(await send(large)).to.equal(201)
    expect(sizes.at(-1)).to.equal(1 + Math.floor(large.length / 4096))
  })

  it('has the size of a body whose length was not announced, once it has arrived', async () => {
    expect(await send(inChunks(large))).to.equal(201)
    expect(sizes.at(-1)).to.equal(1 + Math.floor(large.length / 4096))
  })
})
