import { expect } from 'chai'
import { type Client, clientOf, retryingFetch } from '../../support/client.ts'
import { eventually, takesEffect } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { ledger } from '../../scripts/ledger/fixtures.ts'

const IN_EFFECT_WITHIN_MS = 5_000

describe('a command of an operator on a tenant', () => {
  let service: TestService
  const clientFor = async (who: object): Promise<Client> => clientOf(service.api, await service.token(who))
  const tenants = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await ledger(['tenants', ...args, '--reason', 'a test', '--json'])
    expect(code, stderr).to.equal(0)
    return JSON.parse(stdout)
  }
  const codeOf = async (client: Client, path = '/orders') => (await client.get(path)).body.code

  before(async () => {
    service = await sharedService()
  })

  it('suspends and reinstates the tenant, for every credential, within 5 s', async () => {
    const client = await clientFor({ tenant: 'suspended' })
    expect((await client.get('/orders')).status).to.equal(200)
    expect(await tenants('suspend', 'suspended', '--force')).to.deep.equal({
      tenant: 'suspended',
      suspended: true,
      revoked: [],
    })
    await takesEffect(async () => (await codeOf(client)) === 'policy_denied', IN_EFFECT_WITHIN_MS)
    const user = await clientFor({ tenant: 'suspended', user: true, subject: 'a-user' })
    expect(await codeOf(user)).to.equal('policy_denied')
    expect(await codeOf(await clientFor({ tenant: 'suspended-not' }))).to.equal(undefined)
    await tenants('reinstate', 'suspended')
    await takesEffect(async () => (await codeOf(client)) === undefined, IN_EFFECT_WITHIN_MS)
  })

  it('revokes and restores a scope of a subject', async () => {
    const [clerk, chief] = await Promise.all(
      ['clerk', 'chief'].map(subject => clientFor({ tenant: 'revoking', subject })),
    )
    if (!clerk || !chief) throw new Error('There are not two clients.')
    await clerk.get('/orders')
    const scope = ['--subject', 'clerk', '--scope', 'orders:read'] as const
    expect((await tenants('revoke-scope', 'revoking', ...scope)).revoked).to.deep.equal([
      { subject: 'clerk', scope: 'orders:read' },
    ])
    await takesEffect(async () => (await codeOf(clerk)) === 'insufficient_scope', IN_EFFECT_WITHIN_MS)
    expect([await codeOf(chief), await codeOf(clerk, '/invoices')]).to.deep.equal([undefined, undefined])
    await tenants('restore-scope', 'revoking', ...scope)
    await takesEffect(async () => (await codeOf(clerk)) === undefined, IN_EFFECT_WITHIN_MS)
  })

  it('ends an open stream of events', async () => {
    const token = await service.token({ tenant: 'streaming' })
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
    const response = await retryingFetch(`${service.api}/events`, { headers })
    const text = response.text()
    await tenants('suspend', 'streaming', '--force')
    expect(await text).to.match(/\n: ended: policy_denied\n\n$/)
  })

  it('is recorded for the audit', async () => {
    const auditor = await clientFor({ tenant: 'revoking' })
    await eventually(async () => {
      const { body } = await auditor.get('/audit-records?operation=restore_scope')
      return body.items[0]?.resource === 'clerk orders:read' && body.items[0].client === 'ledger-cli'
    })
  })

  for (const [what, args, message] of [
    ['an unknown scope', ['revoke-scope', 'acme', '--subject', 'x', '--scope', 'nope'], 'There is no scope "nope"'],
    ['a malformed tenant', ['suspend', 'Acme!'], 'A tenant is 1 to 63'],
  ] as const)
    it(`is refused with the reason for ${what}`, async () => {
      const { code, stderr } = await ledger(['tenants', ...args, '--reason', 'a test'])
      expect(code).to.equal(2)
      expect(stderr).to.include(message)
    })
})
