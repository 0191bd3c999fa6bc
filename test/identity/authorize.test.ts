import { expect } from 'chai'
import { authorize, type Caller, type Demand } from '../../src/identity/authorize.ts'
import { type Principal, SCOPES } from '../../src/identity/principal.ts'

const principal = (changes: Partial<Principal> = {}): Principal => ({
  tenant: 'acme',
  subject: 'alice',
  client: 'web',
  scopes: new Set(SCOPES),
  kind: 'user',
  ...changes,
})

describe('identity: authorize', () => {
  it('grants access by the scope, and names it as the authority', () => {
    const decision = authorize(principal({ scopes: new Set(['orders:read']) }), {
      scope: 'orders:read',
      tenant: 'acme',
    })
    expect(decision).to.deep.equal({ granted: true, authority: 'orders:read' })
  })

  it('refuses a scope that the credential does not carry, also where it carries a similar one', () => {
    for (const scopes of [[], ['orders:read'], ['invoices:write'], ['orders:writer'], ['ORDERS:WRITE']]) {
      const decision = authorize(principal({ scopes: new Set(scopes) }), { scope: 'orders:write' })
      expect(decision, scopes.join()).to.deep.equal({ refused: 'insufficient_scope', check: 'scope' })
    }
  })

  it("treats another tenant's resource as one that does not exist", () => {
    const decision = authorize(principal(), { scope: 'orders:read', tenant: 'globex' })
    expect(decision).to.deep.equal({ refused: 'resource_not_found', check: 'tenant' })
  })

  it('permits API keys to read only, whatever their scopes', () => {
    for (const scope of SCOPES) {
      const decision = authorize(principal({ kind: 'api_key' }), { scope })
      const expected = scope.endsWith(':read')
        ? { granted: true, authority: scope }
        : { refused: 'credential_not_permitted', check: 'credential' }
      expect(decision, scope).to.deep.equal(expected)
    }
  })

  it('refuses a kind of credential that the operation does not permit', () => {
    const demand: Demand = { scope: 'payments:settle', kinds: ['workload'] }
    expect(authorize(principal(), demand)).to.have.property('refused', 'credential_not_permitted')
    expect(authorize(principal({ kind: 'workload' }), demand)).to.have.property('granted', true)
  })

  it('hides resources of another caller of the same tenant', () => {
    const owner = { subject: 'alice', client: 'web' }
    const mine = { scope: 'payments:read', tenant: 'acme', owner } as const
    expect(authorize(principal(), mine)).to.have.property('granted', true)
    for (const other of [{ subject: 'bob' }, { client: 'cli' }]) {
      const decision = authorize(principal(other), mine)
      expect(decision).to.deep.equal({ refused: 'resource_not_found', check: 'ownership' })
    }
  })

  it('requires another subject where four eyes are demanded', () => {
    const demand: Demand = { scope: 'invoice:approve', tenant: 'acme', otherThan: { subject: 'alice', client: 'web' } }
    expect(authorize(principal(), demand)).to.deep.equal({ refused: 'policy_denied', check: 'policy' })
    expect(authorize(principal({ subject: 'bob' }), demand)).to.have.property('granted', true)
  })

  const user = { subject: 'alice', client: 'web' }
  const workload: Caller = { subject: 'web', client: 'web', workload: true }
  const foreign: Caller = { subject: 'svc', client: 'web', workload: true }
  const cases: readonly [what: string, creator: Caller, approver: Partial<Principal>, granted: boolean][] = [
    ['a user, another user of the same client', user, { subject: 'bob' }, true],
    ['a user, the same user through another client', user, { client: 'cli' }, false],
    ['a client by itself, its user', workload, { subject: 'bob' }, false],
    ['a client by itself, the user of another client', workload, { client: 'cli' }, true],
    ['a user, its client by itself', user, { subject: 'web', kind: 'workload' }, false],
    ['a user, its client by itself with a subject of another form', user, { subject: 'svc', kind: 'workload' }, false],
    ['a user, another client by itself', user, { subject: 'cli', client: 'cli', kind: 'workload' }, true],
    ['a client by itself with a subject of another form, its user', foreign, { subject: 'bob' }, false],
    ['a client by itself with a subject of another form, the user of another client', foreign, { client: 'cli' }, true],
    ['a client by itself, the same', workload, { subject: 'web', kind: 'workload' }, false],
  ]
  for (const [what, otherThan, approver, granted] of cases)
    it(`${granted ? 'takes' : 'does not take'} these for four eyes: ${what}`, () => {
      const decision = authorize(principal(approver), { scope: 'invoice:approve', otherThan })
      expect('granted' in decision).to.equal(granted)
    })

  it('checks the scope before the tenant, and the tenant before the policy', () => {
    const demand: Demand = { scope: 'invoice:approve', tenant: 'globex', otherThan: user }
    expect(authorize(principal(), demand)).to.have.property('check', 'tenant')
    expect(authorize(principal({ scopes: new Set() }), demand)).to.have.property('check', 'scope')
  })
})
