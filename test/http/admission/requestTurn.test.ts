import { expect } from 'chai'
import type { Account } from '../../../src/fairness/account.ts'
import { anOrder } from '../../support/client.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant, type Variant } from '../../support/serviceVariants.ts'

describe('the turn of a request', () => {
  const charges: number[] = []
  let variant: Variant
  before(async () => {
    const enter = async ({ laterMs = 0 }: Account) => {
      charges.push(laterMs)
      return () => undefined
    }
    variant = await startVariant(await sharedService(), {
      turns: { tryEnter: () => undefined, enter, isAlone: () => true },
      authenticate: async () => caller,
    })
  })
  after(() => variant.close())
  beforeEach(() => charges.splice(0))

  const body = JSON.stringify(anOrder())
  const large = `${body}${' '.repeat(20_000)}`

  const send = async (content: string | ReadableStream): Promise<number> => {
    const headers = { authorization: 'Bearer any', 'content-type': 'application/json' }
    const answer = await fetch(`${variant.api}/orders`, { method: 'POST', headers, body: content, duplex: 'half' })
    await answer.arrayBuffer()
    return answer.status
  }
  const inChunks = (text: string): ReadableStream => new Blob([text]).stream()

  it('is charged for the bytes of its body, which cost stores and feeds later', async () => {
    expect(await send(body)).to.equal(201)
    expect(charges.at(-1)).to.be.within(0, 0.2)
    expect(await send(large)).to.equal(201)
    expect(charges.at(-1)).to.be.within(7, 8)
  })

  it('is charged for a body whose length was not announced, once it has arrived', async () => {
    expect(await send(inChunks(large))).to.equal(201)
    expect(charges.at(-1)).to.be.within(7, 8)
  })
})
