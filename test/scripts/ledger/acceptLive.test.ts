import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import type { Head } from '../../../src/evidence/heads.ts'
import type { Database } from '../../../src/ports.ts'
import { anOrder, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { removeFolder } from '../../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../../support/service.ts'
import { ledger } from './fixtures.ts'

/** `evidence accept` beside a running service, whose signing has the tree in its memory. */

const ORDERS = 40
const WAIT_MS = 60_000

describe('ledger evidence accept while the service runs', () => {
  let dataDir: string
  let service: ServiceProcess
  let database: Database

  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir)
    database = openDatabase({ connectionString: service.addresses.postgres })
    for (let n = 0; n < ORDERS; n += 1) await order()
    await headFrom(await order())
  })
  after(async () => {
    await database.close()
    await service.end('SIGKILL')
    await removeFolder(dataDir)
  })

  const order = async (): Promise<bigint> => {
    const client = clientOf(service.api, await service.token({ tenant: 'accepting' }))
    const created = await client.post('/orders', anOrder())
    expect(created.status).to.equal(201)
    return BigInt(created.headers.get('ledger-position') ?? 0)
  }
  const heads = async (): Promise<Head[]> => {
    const text = await readFile(join(dataDir, 'evidence', 'heads.jsonl'), 'utf8').catch(() => '')
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .flatMap(line => (line === '' ? [] : [JSON.parse(line) as Head]))
  }
  /** The newest head, once it is over the event at the position. */
  const headFrom = (position: bigint): Promise<Head> =>
    eventually(async () => {
      const last = (await heads()).at(-1)
      return last !== undefined && BigInt(last.position) >= position && last
    }, WAIT_MS)
  /** A row of a restart that nothing signed, as a writer of Postgres plants it. */
  const plantRestart = async (): Promise<void> => {
    await database.sql(
      `insert into evidence_restarts
         (generation, kept_size, abandoned_size, abandoned_root, audit_record, accepted_by, accepted_at)
       values (99, 3, 9, '', gen_random_uuid(), 'mallory', now())`,
    )
  }
  const accept = async (): Promise<{ readonly kept_size: number; readonly generation: number }> => {
    const { code, stdout, stderr } = await ledger(['evidence', 'accept', '--reason', 'a test', '--json'], dataDir)
    expect(code, stderr).to.equal(0)
    return JSON.parse(stdout)
  }
  /** Head signing signs new events, each head of the file follows the one before, and nothing is found. */
  const expectSigning = async (generation: number): Promise<void> => {
    expect((await headFrom(await order())).generation).to.equal(generation)
    const all = await heads()
    for (const [n, head] of all.entries()) {
      const before = all[n - 1]
      if (before === undefined) continue
      expect(head.generation).to.be.at.least(before.generation)
      expect(head.previous_size).to.equal(head.restart?.kept_size ?? before.tree_size)
      expect(head.restart !== undefined, `line ${n + 1}`).to.equal(head.generation > before.generation)
    }
    const { code, stdout } = await ledger(['verify', '--only', 'evidence', '--json'], dataDir)
    expect([code, JSON.parse(stdout).checks.flatMap((one: { findings: unknown[] }) => one.findings)]).to.deep.equal([
      0,
      [],
    ])
  }

  it('goes on with the new generation of a service in which nothing else happens', async () => {
    await plantRestart()
    const { generation } = await accept()
    // The record of the acceptance is an event, which head signing covers by itself.
    await eventually(async () => {
      const last = (await heads()).at(-1)
      return last?.generation === generation && last.restart === undefined
    }, WAIT_MS)
    await expectSigning(generation)
  })

  for (const kept of [25, 12])
    it(`goes on with it while orders are made, and the tree is cut below the changed leaf ${kept}`, async () => {
      await database.sql(`update evidence_leaves set hash = decode(repeat('00', 32), 'hex') where leaf = $1`, [
        BigInt(kept),
      ])
      let isOver = false
      const load = async (): Promise<void> => {
        while (!isOver) await order()
      }
      const loads = [load(), load()]
      const { generation, kept_size } = await accept()
      expect(kept_size).to.be.at.most(kept)
      await expectSigning(generation)
      isOver = true
      await Promise.all(loads)
      await expectSigning(generation)
    })
})
