import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { REQUESTS_POOL_MAX } from '../../../src/compose/databasePools.ts'
import type { Database } from '../../../src/ports.ts'
import { anOrder, clientOf, newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** More than the connections of the requests' pool. */
const REQUESTS = 12

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
      `select count(*) as count from pg_stat_activity where application_name = 'ledger' and wait_event_type = 'Lock'`,
    )
    return Number(row?.count)
  }

  /** Whether the projector writes an order while no connection of the requests is free. */
  const isProjectedMeanwhile = async (): Promise<boolean> => {
    const client = clientOf(service.api, await service.token({ tenant: `pools-${newKey().slice(0, 8)}` }))
    let answered = 0
    let isMeanwhile = false
    let requests: Promise<unknown>[] = []
    await database.transaction(async sql => {
      // Requests read this table, and no feed does: without a broker nothing is delivered to subscriptions.
      await sql('lock table subscription_deliveries in access exclusive mode')
      requests = Array.from({ length: REQUESTS }, () =>
        client.get('/subscriptions').finally(() => {
          answered += 1
        }),
      )
      await eventually(async () => (await blocked()) >= REQUESTS_POOL_MAX)
      const order = await client.post('/orders', anOrder())
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

  it('may all be in use without an effect on the feeds, which have separate ones', async () => {
    // Repeated, since on a busy machine a blocked request may reach its deadline first.
    expect(await eventually(isProjectedMeanwhile)).to.equal(true)
  })
})
