import { tenant, type TenantCommand, type TenantEvent } from '../../streams/tenant/index.ts'
import { scenario } from '../support/scenario.ts'

const { given } = scenario(tenant.decider)

const reason = 'overdue'
const suspend: TenantCommand = { type: 'SuspendTenant', reason }
const suspended: TenantEvent = { type: 'TenantSuspended', data: { reason } }
const reinstate: TenantCommand = { type: 'ReinstateTenant', reason }
const reinstated: TenantEvent = { type: 'TenantReinstated', data: { reason } }
const permission = { subject: 'clerk', scope: 'payments:write', reason }
const revoke: TenantCommand = { type: 'RevokeScope', ...permission }
const revoked: TenantEvent = { type: 'ScopeRevoked', data: permission }
const restore: TenantCommand = { type: 'RestoreScope', ...permission }
const restored: TenantEvent = { type: 'ScopeRestored', data: permission }

describe('a tenant', () => {
  it('is suspended, once', () => given().when(suspend).expectOnce(suspended))
  it('is reinstated', () => given(suspended).when(reinstate).expectOnce(reinstated))
  it('that was never suspended is not reinstated', () => given().when(reinstate).expectNothing())
  it('is suspended again after it was reinstated', () =>
    given(suspended, reinstated).when(suspend).expectOnce(suspended))
  it('loses a scope for a subject', () => given().when(revoke).expectOnce(revoked))
  it('loses that scope for no other subject, and no other scope', () => {
    given(revoked)
      .when({ ...revoke, subject: 'chief' })
      .expectOnce({ ...revoked, data: { ...permission, subject: 'chief' } })
    given(revoked)
      .when({ ...revoke, scope: 'payments:read' })
      .expectOnce({ ...revoked, data: { ...permission, scope: 'payments:read' } })
  })
  it('gets a lost scope back', () => given(revoked).when(restore).expectOnce(restored))
  it('gets back only lost scopes', () => given(revoked, restored).when(restore).expectNothing())
})
