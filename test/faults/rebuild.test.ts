import { expect } from 'chai'
import { READ_MODEL_NAMES } from '../../projections/index.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type RebuildKind, type RebuildRow, rebuildById, requestRebuild } from '../../src/feeds/rebuild/requests.ts'
import type { Database } from '../../src/ports.ts'
import { run, start as startScript } from '../scripts/cli.ts'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf, newKey, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

const TENANT = 'rebuilt'
/** A rebuild waits for a poll, and reads the log of this test. */
const REBUILT_MAX_MS = 240_000

describe('a rebuild in the service', () => {
  let dataDir: string
  let running: ServiceProcess
  let client: Client
  let database: Database
  let ids = 0

  const start = async (env: Record<string, string> = {}): Promise<void> => {
    running = await startProcess(dataDir, env)
    client = clientOf(running.api, await running.token({ tenant: TENANT }))
    database = openDatabase({ connectionString: running.addresses.postgres, statementTimeoutMs: 30_000 })
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    await database.close()
    await running.end(signal)
  }
  const cli = (...args: string[]) => run('ledger.ts', ['projections', ...args], { LEDGER_DATA_DIR: dataDir })
  const request = async (projection: string, kind: RebuildKind = 'rebuild'): Promise<string> => {
    const id = `op_${(ids += 1)}`
    await database.transaction(sql => requestRebuild(sql, { id, kind, projection, requested_by: 'test' }))
    return id
  }
  const ended = (id: string): Promise<RebuildRow> =>
    eventually(async () => {
      const row = await rebuildById(database.sql, id)
      return row !== undefined && row.state !== 'pending' && row.state !== 'running' && row
    }, REBUILT_MAX_MS)
  /** A machine under load refuses requests with a 503 or a 504, which callers repeat; any other failure is returned. */
  const answered = (ask: () => Promise<Answer>): Promise<Answer> =>
    eventually(async () => {
      const answer = await ask()
      return answer.status !== 503 && answer.status !== 504 && answer
    })
  const paid = async (): Promise<Answer> => {
    const { invoiceId } = await eventually(() => approvedInvoice(client, 900).catch(() => undefined))
    const key = newKey()
    return answered(() => pay(client, aPayment(invoiceId, { amount: 900 }), key))
  }
  const get = (path: string): Promise<Answer> => answered(() => client.get(path))

  before(async () => {
    dataDir = await temporaryDirectory()
    await start()
    for (let n = 0; n < 10; n += 1) expect((await paid()).status).to.be.oneOf([201, 202])
  })
  after(async () => {
    await end('SIGTERM')
    await removeFolder(dataDir)
  })

  it('of every read model under writes and reads fails no request, and lists and ETags stay', async () => {
    const created: string[] = []
    const failed: string[] = []
    const check = ({ status, text }: Answer, target: number): void => {
      if (status !== target) failed.push(`${status} ${text}`)
    }
    const pages = async () =>
      (await get(`/payments?created_before=${encodeURIComponent(before)}`)).body.items as {
        id: string
        state: string
      }[]
    const before = new Date(Date.now()).toISOString()
    const target = await eventually(async () => {
      const items = await pages()
      return items.length === 10 && items.every(({ state }) => state === 'succeeded') && items
    })
    const etagsOf = () => Promise.all(target.map(async ({ id }) => (await get(`/payments/${id}`)).headers.get('etag')))
    const etags = await etagsOf()
    let isOver = false
    const writing = async (): Promise<void> => {
      while (!isOver) {
        const answer = await paid()
        check(answer, answer.status === 202 ? 202 : 201)
        if (answer.status === 201) created.push(answer.body.id)
      }
    }
    const reading = async (): Promise<void> => {
      const paths = ['/payments?limit=100', '/invoices?state=paid', '/orders', '/events?limit=5', '/operations']
      while (!isOver) for (const path of paths) check(await get(path), 200)
    }
    const load = [writing(), writing(), reading(), reading()]
    const { code, stdout, stderr } = await cli('rebuild', ...READ_MODEL_NAMES, '--json')
    isOver = true
    await Promise.all(load)
    expect(code, stderr).to.equal(0)
    const { rebuilds } = JSON.parse(stdout) as { rebuilds: RebuildRow[] }
    expect(rebuilds.map(({ projection, state, difference }) => [projection, state, difference])).to.deep.equal(
      READ_MODEL_NAMES.map(name => [name, 'succeeded', null]),
    )
    expect(failed).to.deep.equal([])
    expect(await pages()).to.deep.equal(target)
    expect(await etagsOf()).to.deep.equal(etags)
    const isListed = async (): Promise<boolean> => {
      const rows = await database.sql<{ id: string }>('select id from payments_v1 where tenant_id = $1', [TENANT])
      const listed = new Set(rows.map(({ id }) => id))
      return created.every(id => listed.has(id))
    }
    await eventually(isListed)
    const verified = await cli('verify', '--json')
    expect(verified.code, verified.stderr).to.equal(0)
  })

  it('waits for an export that reads the table, while the service goes on', async () => {
    const reader = Promise.withResolvers<void>()
    const holding = Promise.withResolvers<void>()
    const exporting = database.snapshot(async ({ sql }) => {
      await sql('lock table payments_v1 in access share mode')
      await sql('select count(*) from payments_v1')
      holding.resolve()
      await reader.promise
    })
    await holding.promise
    const id = await request('payments')
    await eventually(async () => (await rebuildById(database.sql, id))?.error?.includes('in use'), REBUILT_MAX_MS)
    expect((await get('/payments')).status).to.equal(200)
    expect((await paid()).status).to.be.oneOf([201, 202])
    reader.resolve()
    await exporting
    expect((await ended(id)).state).to.equal('succeeded')
  })

  for (const point of ['rebuild_batch', 'rebuild_switch'])
    it(`whose process is killed at ${point} is ended by the next one`, async () => {
      await end('SIGTERM')
      await start({ CRASH_AT: point })
      const id = await request('invoices')
      expect(await running.ended).to.equal('SIGKILL')
      await database.close()
      await start()
      const { state, difference } = await ended(id)
      expect([state, difference]).to.deep.equal(['succeeded', null])
      expect((await paid()).status).to.be.oneOf([201, 202])
      expect((await ended(await request('invoices', 'verify'))).difference).to.equal(null)
    })

  it('goes on after Ctrl-C, and the printed command follows it without another request', async () => {
    const command = startScript('ledger.ts', ['projections', 'rebuild', 'orders', 'invoices'], {
      LEDGER_DATA_DIR: dataDir,
    })
    const count = async (): Promise<number> =>
      Number((await database.sql<{ n: bigint }>('select count(*) as n from projection_rebuilds'))[0]?.n)
    const before = await count()
    await eventually(async () => (await count()) === before + 2)
    command.child.kill('SIGINT')
    const { code, stderr } = await command.ended
    // A fast machine may have ended both before the signal came.
    if (code === 0) return
    expect(code, stderr).to.equal(130)
    const [, ...printed] = /projections (follow op_\S+ op_\S+)/.exec(stderr) ?? []
    const followed = await cli(...(printed[0] ?? '').split(' '), '--json')
    expect(followed.code, followed.stderr).to.equal(0)
    const { rebuilds } = JSON.parse(followed.stdout) as { rebuilds: RebuildRow[] }
    expect(rebuilds.map(({ projection, state }) => [projection, state])).to.deep.equal([
      ['orders', 'succeeded'],
      ['invoices', 'succeeded'],
    ])
    expect(await count()).to.equal(before + 2)
  })

  it('is refused, accepted with a reason and rolled back on the command line, with audit records', async () => {
    await database.sql(`update orders_v1 set description = 'by hand' where tenant_id = $1`, [TENANT])
    const refused = await cli('rebuild', 'orders')
    expect(refused.code).to.equal(1)
    expect(refused.stdout).to.match(/refused; the rows differ[^]*description: live by hand, rebuilt none/)
    expect((await cli('rebuild', 'orders', '--accept-differences')).stderr).to.equal(
      'A reason is required: --reason.\n',
    )
    const accepted = await cli('rebuild', 'orders', '--accept-differences', '--reason', 'changed by hand')
    expect(accepted.code, accepted.stderr).to.equal(0)
    const again = await cli('rebuild', 'orders', '--accept-differences', '--reason', 'changed by hand')
    expect([again.code, again.stderr]).to.deep.equal([
      2,
      'No rebuild of orders was refused. Rebuild it without --accept-differences first.\n',
    ])
    expect((await cli('rollback', 'orders')).code).to.equal(0)
    const [row] = await database.sql<{ n: bigint }>(`select count(*) as n from orders_v1 where description = 'by hand'`)
    expect(Number(row?.n)).to.be.greaterThan(0)
    const operations = await eventually(async () => {
      const rows = await database.sql<{ operation: string }>(
        `select operation from audit_v2 where tenant_id = 'ledger'`,
      )
      const actual = rows.map(({ operation }) => operation)
      return actual.includes('roll_back_projection') && actual
    })
    expect(operations).to.include.members(['rebuild_projection', 'accept_projection_differences'])
  })

  it('refuses unknown names and ids in one sentence', async () => {
    expect((await cli('rebuild', 'nothing')).stderr).to.match(/^There is no read model nothing\. There are orders, /)
    expect((await cli('follow', 'op_none')).stderr).to.include('There is no rebuild op_none')
    expect((await cli('list')).stdout).to.match(/NAME +CHECKPOINT[^]*payments +payments_v1/)
  })
})
