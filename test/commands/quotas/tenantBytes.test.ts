import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { QuotaExceeded, type QuotaUse } from '../../../src/commands/quotas/byteQuota.ts'
import { readConfig } from '../../../src/settings/config.ts'
import { openTenantBytes, type TenantBytes, tenantsAbove } from '../../../src/commands/quotas/tenantBytes.ts'
import { createLedgerTables } from '../../../src/feeds/ledgerTables.ts'
import { type Database, type Sql, Unavailable } from '../../../src/ports.ts'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import { eventually } from '../../support/eventually.ts'
import { newDatabase } from '../../support/postgres.ts'

const GIB = 2 ** 30
const KIB = 1024
const HOUR_MS = 3_600_000

/** Sleeps end at `pass`, or at their signal. */
const createClock = (atMs = Date.now()) => {
  let nowMs = atMs
  const ends = new Set<() => void>()
  return {
    now: () => nowMs,
    advance: (timeMs: number) => void (nowMs += timeMs),
    sleep: (_timeMs: number, signal?: AbortSignal): Promise<void> =>
      new Promise(resolve => {
        if (signal?.aborted) return resolve()
        signal?.addEventListener('abort', () => resolve())
        ends.add(resolve)
      }),
    pass: (): void => {
      for (const end of ends) end()
      ends.clear()
    },
  }
}

describe('the bytes of tenants', () => {
  let database: Database
  const open: { close: () => Promise<void> }[] = []
  before(async () => {
    database = openDatabase({ connectionString: await newDatabase() })
    await createLedgerTables(database)
  })
  beforeEach(() => database.sql('delete from tenant_bytes'))
  afterEach(async () => {
    await Promise.all(open.splice(0).map(one => one.close()))
  })
  after(() => database.close())

  const instance = (bytesPerDay: number, given: { sql?: Sql; atMs?: number } = {}) => {
    const clock = createClock(given.atMs)
    const statements: string[] = []
    const failures: unknown[] = []
    const sql: Sql = (text, values) => {
      statements.push(text.trim().split(' ')[0] ?? '')
      return (given.sql ?? database.sql)(text, values)
    }
    const onFailure = (error: unknown): void => void failures.push(error)
    const bytes = openTenantBytes({ database: { sql }, world: clock, bytesPerDay, onFailure })
    open.push(bytes)
    return { ...bytes, ...clock, statements, failures }
  }
  const isRefused = (bytes: TenantBytes, tenant = 'acme', use: QuotaUse = 'command'): Promise<boolean> =>
    bytes.check(tenant, use).then(
      () => false,
      (error: unknown) => {
        if (error instanceof QuotaExceeded) return true
        throw error
      },
    )
  const stored = async () => Object.fromEntries((await tenantsAbove(database.sql, 0)).map(one => Object.values(one)))

  it('are limited by a setting with a unit', () => {
    const bytesOf = (value?: string) => readConfig(value ? { TENANT_BYTES_PER_DAY: value } : {}).tenantBytesPerDay
    expect(bytesOf()).to.equal(5 * GIB)
    expect(bytesOf('512KiB')).to.equal(512 * KIB)
    expect(bytesOf('2TiB')).to.equal(2_048 * GIB)
    for (const value of ['0GiB', '5GB', '5', '1.5GiB', 'off'])
      expect(() => bytesOf(value)).to.throw(/TENANT_BYTES_PER_DAY=.* 5GiB/)
  })

  it('cost one statement a second, however many commands and tenants there are', async () => {
    const bytes = instance(5 * GIB)
    for (let command = 0; command < 1_000; command++) {
      const tenant = `tenant-${command % 10}`
      await bytes.check(tenant, 'command')
      bytes.count(tenant, 4 * KIB)
    }
    expect(bytes.statements).to.deep.equal([])
    bytes.pass()
    await eventually(async () => (await stored())['tenant-0'] === 100 * 4 * KIB)
    expect(bytes.statements).to.deep.equal(['insert', 'delete'])
  })

  it('add up over all instances, and are complete when these have ended', async () => {
    const instances = [instance(GIB), instance(GIB)]
    for (const bytes of instances) {
      bytes.count('acme', 5)
      bytes.count('globex', 2)
      bytes.count(SYSTEM_TENANT, 9)
    }
    await Promise.all(instances.map(bytes => bytes.close()))
    expect(await stored()).to.deep.equal({ acme: 10, globex: 4 })
  })

  it('exceed the quota by a small share for each instance at most', async () => {
    const quota = 1_000 * KIB
    const step = 4 * KIB
    const instances = Array.from({ length: 3 }, () => instance(quota))
    const refusing = new Set<number>()
    let used = 0
    for (let command = 0; refusing.size < instances.length; command++) {
      const index = command % instances.length
      const bytes = instances[index] as TenantBytes
      if (await isRefused(bytes)) refusing.add(index)
      else {
        bytes.count('acme', step)
        used += step
      }
    }
    expect(used).to.be.within(quota, quota * (1 + 0.02 * instances.length) + step * instances.length)
    expect(await isRefused(instances[0] as TenantBytes, 'globex'), 'another tenant').to.equal(false)
  })

  it('permit audit records a tenth more, and never refuse what ends work that was begun', async () => {
    const bytes = instance(1_000)
    bytes.count('acme', 1_000)
    expect(await isRefused(bytes)).to.equal(true)
    expect(await isRefused(bytes, 'acme', 'audit_record')).to.equal(false)
    bytes.count('acme', 100)
    expect(await isRefused(bytes, 'acme', 'audit_record')).to.equal(true)
    expect(await isRefused(bytes, 'acme', 'completion')).to.equal(false)
  })

  it('need no statement to refuse, and begin anew at 00:00 UTC', async () => {
    const bytes = instance(1_000, { atMs: Date.parse('2026-03-01T22:00:00Z') })
    bytes.count('acme', 5_000)
    expect(await isRefused(bytes)).to.equal(true)
    bytes.pass()
    await eventually(() => bytes.statements.length === 2)
    for (let attempt = 0; attempt < 100; attempt++) expect(await isRefused(bytes)).to.equal(true)
    expect(bytes.statements).to.have.length(2)
    const refusal = await bytes.check('acme', 'command').catch((error: unknown) => error)
    expect(refusal).to.include({ usedBytes: 5_000, bytesPerDay: 1_000, resetMs: 2 * HOUR_MS })
    bytes.advance(2 * HOUR_MS)
    expect(await isRefused(bytes)).to.equal(false)
  })

  it('are counted by each instance alone while Postgres does not answer, and added afterwards', async () => {
    let isDown = true
    const sql: Sql = (text, values) =>
      isDown ? Promise.reject(new Unavailable('database', { effect: 'none' })) : database.sql(text, values)
    const bytes = instance(1_000, { sql })
    bytes.count('acme', 600)
    expect(await isRefused(bytes), 'waits for the statement once').to.equal(false)
    expect(bytes.failures).to.have.length(1)
    expect(await isRefused(bytes)).to.equal(false)
    bytes.count('acme', 600)
    expect(await isRefused(bytes)).to.equal(true)
    isDown = false
    bytes.pass()
    await eventually(async () => (await stored())['acme'] === 1_200)
  })
})
