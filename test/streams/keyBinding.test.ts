import { keyBinding, type KeyBindingEvent } from '../../streams/keyBinding/index.ts'
import { scenario } from '../support/scenario.ts'
import { claim } from './samples.ts'

const { given } = scenario(keyBinding.decider)

const bind = { type: 'BindKey', claim } as const
const bound: KeyBindingEvent = { type: 'KeyBound', data: { claim } }

describe('the binding of a key', () => {
  it('is made by the first request', () => given().when(bind).expectOnce(bound))
  it('is not changed by another request', () =>
    given(bound)
      .when({ ...bind, claim: { ...claim, fingerprint: 'cc'.repeat(32) } })
      .expectNothing())
})
