import { expect } from 'chai'
import { Problem } from '../../../src/http/problems/problemCatalogue.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { askFor, ended } from '../../support/exportSteps.ts'
import { eventually } from '../../support/eventually.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { caller, startVariant } from '../../support/serviceVariants.ts'

const AFTER_RECHECK_MS = 6_000
/** Each has 25 KB of metadata, and a chunk has 256 KiB. */
const ORDERS_OF_TWO_CHUNKS = 14

describe('downloads of exports', () => {
  const tenant = `downloads-${newKey().slice(0, 8)}`
  let service: TestService
  let client: Client
  let id: string
  const path = (): string => `/exports/${id}/content`
  const finished = async (): Promise<string> => {
    const requested = await askFor(client, { resource: 'orders', format: 'jsonl' })
    expect((await ended(client, requested)).body.state).to.equal('succeeded')
    return requested
  }
  const finishedInTwoChunks = async (): Promise<string> => {
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`member_${n}`, 'x'.repeat(500)]))
    for (let n = 0; n < ORDERS_OF_TWO_CHUNKS; n++) await client.post('/orders', { ...anOrder(), metadata })
    return finished()
  }

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant }))
    await client.post('/orders', anOrder())
    id = await finished()
  })

  it('are 4 at once for a caller and 8 for its tenant, and each one that ends makes room', async () => {
    const waiting: (() => void)[] = []
    let reads = 0
    let isOpen = false
    const variant = await startVariant(service, {
      authenticate: async req => ({ ...caller, tenant, subject: String(req.headers['authorization']) }),
      services: usual => ({
        ...usual,
        bulk: {
          sql: async (text, values) => {
            reads += 1
            if (!isOpen) await new Promise<void>(resolve => waiting.push(resolve))
            return usual.bulk.sql(text, values)
          },
        },
      }),
    })
    const start = (who: string) => fetch(`${variant.api}${path()}`, { headers: { authorization: who } })
    try {
      const open = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b'].map(start)
      await eventually(() => reads === 8)
      for (const [who, named] of [
        ['a', '"downloads"'],
        ['c', '"tenant_downloads"'],
      ] as const) {
        const refused = await start(who)
        expect(refused.status).to.equal(429)
        expect(await refused.text()).to.include(named.replaceAll('"', ''))
      }
      isOpen = true
      for (const resolve of waiting) resolve()
      for (const answer of await Promise.all(open)) {
        expect(answer.status).to.equal(200)
        await answer.arrayBuffer()
      }
      await eventually(async () => (await start('a')).status === 200)
    } finally {
      isOpen = true
      for (const resolve of waiting) resolve()
      await variant.close()
    }
  })

  it('are cut off when the caller loses the right while the file is sent', async () => {
    let hasRight = true
    const variant = await startVariant(service, {
      world: { monotonicMs: () => realWorld().monotonicMs() + (hasRight ? 0 : AFTER_RECHECK_MS) },
      authenticate: async () => {
        if (!hasRight) throw new Problem('token_expired')
        return { ...caller, tenant }
      },
      services: usual => ({
        ...usual,
        bulk: {
          sql: (text, values) => {
            hasRight = !text.includes('encode(bytes')
            return usual.bulk.sql(text, values)
          },
        },
      }),
    })
    try {
      const read = fetch(`${variant.api}${path()}`).then(answer => answer.arrayBuffer())
      expect(await rejectionOf(read)).to.be.instanceOf(Error)
      expect(hasRight).to.equal(false)
    } finally {
      await variant.close()
    }
  })

  it('are cut off, and not shortened without a word, when the file is deleted meanwhile', async () => {
    const deleted = await finishedInTwoChunks()
    const isDeleted = Promise.withResolvers<void>()
    let chunks = 0
    const variant = await startVariant(service, {
      authenticate: async () => ({ ...caller, tenant }),
      services: usual => ({
        ...usual,
        bulk: {
          sql: async (text, values) => {
            if (text.includes('encode(bytes') && ++chunks === 2) await isDeleted.promise
            return usual.bulk.sql(text, values)
          },
        },
      }),
    })
    try {
      const answer = await fetch(`${variant.api}/exports/${deleted}/content`)
      expect(answer.status).to.equal(200)
      const rest = rejectionOf(answer.arrayBuffer())
      await eventually(() => chunks === 2)
      expect((await client.request('DELETE', `/exports/${deleted}`)).status).to.equal(204)
      isDeleted.resolve()
      expect(await rest).to.be.instanceOf(Error)
    } finally {
      isDeleted.resolve()
      await variant.close()
    }
  })

  it('are answered with 410 when a restore of Postgres has lost all chunks of the file, or the last ones', async () => {
    const restored = await finishedInTwoChunks()
    const database = openDatabase({ connectionString: service.addresses.postgres })
    try {
      for (const seq of [1, 0]) {
        const lost = 'delete from export_chunks where operation_id = $1 and seq >= $2 returning seq'
        expect(await database.sql(lost, [restored, seq])).to.have.length.above(0)
        for (const headers of [{}, { range: 'bytes=0-9' }])
          expect((await client.get(`/exports/${restored}/content`, headers)).body).to.include({
            status: 410,
            code: 'export_expired',
          })
        expect((await client.get(`/exports/${restored}/manifest`)).status).to.equal(410)
      }
    } finally {
      await database.close()
    }
  })

  it('have connections of their own', async () => {
    const database = openDatabase({ connectionString: service.addresses.postgres })
    const poolsThatRead = async (): Promise<string[]> => {
      const rows = await database.sql<{ name: string }>(
        `select distinct application_name as name from pg_stat_activity where query like '%encode(bytes%'
          and pid <> pg_backend_pid()`,
      )
      return rows.map(({ name }) => name)
    }
    try {
      // The last statement of an idle connection is shown until another one follows.
      await eventually(async () => {
        expect((await client.get(path())).status).to.equal(200)
        return (await poolsThatRead()).includes('ledger-bulk')
      })
      expect(
        (await poolsThatRead()).filter(name => name.startsWith('ledger-') && name !== 'ledger-bulk'),
      ).to.deep.equal([])
    } finally {
      await database.close()
    }
  })

  it('end with DELETE: the file is gone at once, the operation can be read, and again it is no error', async () => {
    const deleted = await finished()
    for (let times = 0; times < 2; times++)
      expect((await client.request('DELETE', `/exports/${deleted}`)).status).to.equal(204)
    expect((await client.get(`/exports/${deleted}/content`)).body).to.include({ status: 410, code: 'export_expired' })
    expect((await client.get(`/operations/${deleted}`)).body).to.include({ state: 'expired', result: null })
    const database = openDatabase({ connectionString: service.addresses.postgres })
    const chunks = await database.sql('select seq from export_chunks where operation_id = $1', [deleted])
    await database.close()
    expect(chunks).to.deep.equal([])
    const other = clientOf(service.api, await service.token({ tenant: 'downloads-other' }))
    expect((await other.request('DELETE', `/exports/${id}`)).status).to.equal(404)
    const reader = clientOf(service.api, await service.token({ tenant, scopes: ['exports:read'] }))
    expect((await reader.request('DELETE', `/exports/${id}`)).status).to.equal(403)
    await eventually(async () =>
      (await client.get(`/audit-records?resource=${deleted}`)).body.items?.some(
        ({ operation }: { operation: string }) => operation === 'delete_export',
      ),
    )
  })
})
