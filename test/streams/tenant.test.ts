import { tenant, type TenantCommand, type TenantEvent } from '../../streams/tenant/index.ts'
import { scenario } from '../support/scenario.ts'

const { given } = scenario(tenant.decider)

const reason = 'overdue'
const suspend: TenantCommand = { type: 'SuspendTenant', reason }
const suspended: TenantEvent = { type: 'TenantSuspended', data: { reason } }
const reinstate: TenantCommand = { type: 'ReinstateTenant', reason }
const reinstated: TenantEvent = { type: 'TenantReinstated', data: { reason } }
const right = { subject: 'clerk', scope: 'payments:write', reason }
const revoke: TenantCommand = { type: 'RevokeScope', ...right }
const revoked: TenantEvent = { type: 'ScopeRevoked', data: right }
const restore: TenantCommand = { type: 'RestoreScope', ...right }
const restored: TenantEvent = { type: 'ScopeRestored', data: right }

describe('a tenant', () => {
  it('is suspended, once', () => given().when(suspend).expectOnce(suspended))
  it('is reinstated', () => given(suspended).when(reinstate).expectOnce(reinstated))
  it('that was never suspended is not reinstated', () => given().when(reinstate).expectNothing())
  it('is suspended again after it was reinstated', () =>
    given(suspended, reinstated).when(suspend).expectOnce(suspended))
  it('takes a scope from a subject', () => given().when(revoke).expectOnce(revoked))
  it('takes it from nobody else, and takes no other', () => {
    given(revoked)
      .when({ ...revoke, subject: 'chief' })
      .expectOnce({ ...revoked, data: { ...right, subject: 'chief' } })
    given(revoked)
      .when({ ...revoke, scope: 'payments:read' })
      .expectOnce({ ...revoked, data: { ...right, scope: 'payments:read' } })
  })
  it('gives it back', () => given(revoked).when(restore).expectOnce(restored))
  it('gives back only what was taken', () => given(revoked, restored).when(restore).expectNothing())
})
