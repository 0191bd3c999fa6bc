import { expect } from 'chai'
import { secret } from '../../streams/secret/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'

const { given } = scenario(secret.decider)
const textOf = (filling: number): string => Buffer.alloc(32, filling).toString('base64url')
const made = (filling: number) => ({ type: 'SecretMade', data: { secret: textOf(filling) } }) as const
const make = (filling: number) => ({ type: 'MakeSecret', secret: textOf(filling) }) as const

describe('a secret of the log', () => {
  it('is made once', () => given().when(make(1)).expectOnce(made(1)))

  it('is not changed by later commands or events', () => {
    given(made(1)).when(make(2)).expectNothing()
    expect(stateAfter(secret.decider, [made(1), made(2)])).to.deep.equal({
      status: 'made',
      secret: textOf(1),
    })
  })

  it('is never read from an event with a truncated secret', () => {
    const short = { secret: textOf(1).slice(1) }
    expect(() => secret.codec.decode('SecretMade', short, 1)).to.throw()
  })
})
