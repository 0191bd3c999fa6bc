import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { SIGNING_CRASH_POINTS } from '../../src/lib/crashPoints.ts'
import { canonicalRecord } from '../../src/evidence/record.ts'
import { hashOfLeaf, type HeadLine, isSignedBy, naiveRoot } from '../evidence/independent.ts'
import { anOrder, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

/** Head signing process is killed at each of its steps, and the next one goes on. */

describe('a process that is killed while it seals', () => {
  let dataDir: string
  let running: ServiceProcess | undefined
  before(async () => {
    dataDir = await temporaryDirectory()
  })
  after(async () => {
    await running?.end('SIGKILL')
    await removeFolder(dataDir)
  })

  /** The process that runs, or the first one. */
  const healthy = async (): Promise<ServiceProcess> => running ?? start()
  const start = async (env: Record<string, string> = {}): Promise<ServiceProcess> => {
    running = await startProcess(dataDir, { EVIDENCE_HEADS_EVERY: '1s', ...env })
    return running
  }
  const order = async (service: ServiceProcess): Promise<bigint> => {
    const client = clientOf(service.api, await service.token({ tenant: 'crash' }))
    const created = await client.post('/orders', anOrder())
    expect(created.status).to.equal(201)
    return BigInt(created.headers.get('ledger-position') ?? 0)
  }
  const heads = async (): Promise<HeadLine[]> => {
    const text = await readFile(join(dataDir, 'evidence', 'heads.jsonl'), 'utf8').catch(() => '')
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    return whole.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as HeadLine]))
  }
  const headUpTo = (position: bigint): Promise<HeadLine> =>
    eventually(async () => (await heads()).find(head => BigInt(head.position) >= position), 120_000)

  /** The hashes of all events up to a position, read from the store. */
  const leavesUpTo = async (address: string, position: bigint): Promise<Buffer[]> => {
    const store = openEventStore({ connectionString: address })
    const stop = new AbortController()
    const leaves: Buffer[] = []
    try {
      for await (const item of store.subscribe({ after: 'start', withBytes: true, signal: stop.signal })) {
        if (item.kind === 'caught_up') break
        if (item.kind === 'event' && item.event.position <= position)
          leaves.push(hashOfLeaf(canonicalRecord(item.event)))
      }
    } finally {
      stop.abort()
      await store.close()
    }
    return leaves
  }

  for (const point of SIGNING_CRASH_POINTS)
    it(`at ${point}: the next one signs a head over all events, and no head contradicts another`, async () => {
      const before = await healthy()
      await headUpTo(await order(before))
      await before.end('SIGTERM')
      const dying = await start({ CRASH_AT: point })
      await order(dying).catch(() => undefined)
      expect(await dying.ended).to.equal('SIGKILL')
      const next = await start()
      const last = await headUpTo(await order(next))
      const leaves = await leavesUpTo(next.addresses.event_store, BigInt(last.position))
      const database = openDatabase({ connectionString: next.addresses.postgres })
      try {
        const [key] = await database.sql<{ public_key: string }>('select public_key from evidence_keys')
        for (const head of await heads()) {
          if (head.tree_size > leaves.length) continue
          expect(head.root).to.equal(naiveRoot(leaves.slice(0, head.tree_size)).toString('hex'))
          expect(isSignedBy(head, key?.public_key ?? '')).to.equal(true)
        }
        expect(last.tree_size).to.equal(leaves.length)
      } finally {
        await database.close()
      }
    })
})
