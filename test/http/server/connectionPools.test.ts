import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { LISTS_POOL_MAX } from '../../../src/compose/databasePools.ts'
import type { Database } from '../../../src/ports.ts'
import { anOrder, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** More than the connections of the lists' pool, of which one tenant may hold four fifths. */
const REQUESTS = 12
const ONE_TENANT_MAX = Math.floor(LISTS_POOL_MAX * 0.8)

describe('the connections of requests', () => {
  let service: TestService
  let database: Database

  before(async () => {
    service = await sharedService()
    database = openDatabase({ connectionString: service.addresses.postgres })
  })
  after(() => database.close())

  const blocked = async (): Promise<number> => {
    const [row] = await database.sql<{ count: bigint }>(
      `select count(*) as count from pg_stat_activity where application_name = 'ledger-lists' and wait_event_type = 'Lock'`,
    )
    return Number(row?.count)
  }

  const newTenant = async () => clientOf(service.api, await service.token({ tenant: `pools-${newKey().slice(0, 8)}` }))

  /** Whether another tenant is served, and the projector writes, while one tenant holds all connections that it may. */
  const areOthersServedMeanwhile = async (): Promise<boolean> => {
    const [greedy, other] = [await newTenant(), await newTenant()]
    let answered = 0
    let isMeanwhile = false
    let requests: Promise<unknown>[] = []
    await database.transaction(async sql => {
      // Requests read this table, and no feed does: without a broker nothing is delivered to subscriptions.
      await sql('lock table subscription_deliveries in access exclusive mode')
      requests = Array.from({ length: REQUESTS }, () =>
        greedy.get('/subscriptions').finally(() => {
          answered += 1
        }),
      )
      await eventually(async () => (await blocked()) >= ONE_TENANT_MAX)
      expect((await other.get('/orders')).status).to.equal(200)
      const order = await other.post('/orders', anOrder())
      expect(order.status, order.text).to.equal(201)
      await eventually(async () => {
        const rows = await database.sql('select id from orders_v1 where id = $1', [order.body.id])
        return rows.length === 1
      })
      isMeanwhile = answered === 0
    })
    await Promise.all(requests)
    return isMeanwhile
  }

  it('of which one tenant holds all that it may leave some to other tenants, and those of the feeds are separate', async () => {
    // Repeated, since on a busy machine a blocked request may reach its deadline first.
    expect(await eventually(areOthersServedMeanwhile)).to.equal(true)
  })
})
