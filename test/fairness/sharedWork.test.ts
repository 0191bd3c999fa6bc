import { expect } from 'chai'
import { createSharedCounts } from '../../src/adapters/rateLimiter/sharedCounts.ts'
import { createApiVersionUsage } from '../../src/http/versions/apiVersionUsage.ts'
import { createPersonalTextStorage } from '../../src/personalTexts/personalTexts.ts'
import type { Account } from '../../src/fairness/account.ts'
import { currentAccount, workFor } from '../../src/fairness/currentAccount.ts'
import type { Database, Sql } from '../../src/ports.ts'
import { createRevalidated } from '../../src/lib/staleWhileRevalidate.ts'

const busy: Account = { tenant: 'busy', caller: 'busy/one' }

/** Work that requests of several tenants wait for must not wait in the queue of the tenant whose request began it. */
describe('work that others wait for too belongs to no account', () => {
  let accounts: (Account | undefined)[]
  const record = (): void => void accounts.push(currentAccount())
  const sql: Sql = async () => {
    record()
    return []
  }
  const fail = (error: unknown): void => {
    throw error
  }
  const sleep = async (): Promise<void> => undefined

  beforeEach(() => {
    accounts = []
  })

  it('the statement that counts requests', async () => {
    const counts = createSharedCounts(async () => {
      record()
      return { used: 1, resetMs: 1_000 }
    })
    await workFor(busy, () => counts.count('key', { requests: 10, windowSeconds: 60 }))
    expect(accounts).to.deep.equal([undefined])
  })

  it('the statement that stores the texts of several requests', async () => {
    const storage = createPersonalTextStorage(sql, { sleep })
    const row = { token: 't', tenant: 'busy', kind: 'k', digest: 'd', text: 'x' }
    await workFor(busy, () => storage.store(row))
    expect(accounts).to.deep.equal([undefined])
  })

  it('the transaction that stores the usage of API versions', async () => {
    const transaction = (async work => work(sql)) as Database['transaction']
    const usage = createApiVersionUsage({ database: { transaction }, world: { sleep }, onFailure: fail })
    workFor(busy, () => usage.count('v1', 'GET /orders', { tenant: 'busy', client: 'one' }))
    await usage.close()
    expect(accounts).to.have.length.greaterThan(0)
    expect(new Set(accounts)).to.deep.equal(new Set([undefined]))
  })

  it('the reading of a value that is kept: keys, revocations, the status of a tenant', async () => {
    const value = createRevalidated({
      refreshAfterMs: 10,
      maxAgeMs: 20,
      outageMaxMs: 0,
      retryAfterMs: 0,
      monotonicNow: () => 0,
      read: async () => record(),
      onFailure: fail,
    })
    await workFor(busy, () => value.ready())
    expect(accounts).to.deep.equal([undefined])
  })
})
