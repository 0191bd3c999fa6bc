import { access, type AccessCommand, type AccessEvent } from '../../streams/access/index.ts'
import { scenario } from '../support/scenario.ts'
import { id } from './samples.ts'

const { given } = scenario(access.decider)

const requested = { operation: 'approve_invoice', resource: id('inv') }
const grant: AccessCommand = { type: 'GrantAccess', ...requested }
const granted: AccessEvent = { type: 'AccessGranted', data: requested }
const reason = { check: 'policy', code: 'policy_denied' } as const
const deny: AccessCommand = { type: 'DenyAccess', ...requested, ...reason }
const denied: AccessEvent = { type: 'AccessDenied', data: { ...requested, ...reason } }

describe('a decision about access', () => {
  it('is recorded when it is a grant', () => given().when(grant).expectThenRefused('concurrent_modification', granted))
  it('is recorded with the check and the code when it is a denial', () =>
    given().when(deny).expectThenRefused('concurrent_modification', denied))
  it('is never revised', () => given(denied).when(grant).expectRejected('concurrent_modification'))
})
