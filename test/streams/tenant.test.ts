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
  it('loses a scope for a subject', () => given().when(revoke).expectOnce(revoked))
  it('loses it for no other subject, and loses no other scope', () => {
    given(revoked)
      .when({ ...revoke, subject: 'chief' })
      .expectOnce({ ...revoked, data: { ...right, subject: 'chief' } })
    given(revoked)
      .when({ ...revoke, scope: 'payments:read' })
      .expectOnce({ ...revoked, data: { ...right, scope: 'payments:read' } })
  })
  it('gets it back', () => given(revoked).when(restore).expectOnce(restored))
  it('gets back only lost scopes', () => given(revoked, restored).when(restore).expectNothing())
})
