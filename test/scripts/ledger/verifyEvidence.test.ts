import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { acceptLog } from '../../../scripts/ledger/evidence/acceptance.ts'
import { progressFor } from '../../../scripts/ledger/progress.ts'
import { evidenceCheck } from '../../../scripts/ledger/verify/evidence.ts'
import { createLedger } from '../../../src/commands/commandHandler.ts'
import { readConfig } from '../../../src/settings/config.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { type Head, isSigned, signHead, type SigningKey, signingKeyOf } from '../../../src/evidence/heads.ts'
import {
  headOfSize,
  headsAfter,
  lastHead,
  provableHead,
  type Restart,
  restartRows,
  signedBefore,
  storeHead,
  storeKey,
  storeRestart,
} from '../../../src/evidence/headStore.ts'
import { leafOf } from '../../../src/evidence/record.ts'
import { cutTree, rootAt } from '../../../src/evidence/tree.ts'
import type { Database, EventStore, NewEvent, StoredEvent } from '../../../src/ports.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import { headSigningFeed } from '../../../src/processes/headSigning.ts'
import { createTables } from '../../../src/schema/tables.ts'
import { useTestPostgres } from '../../feeds/fixtures.ts'
import { drive } from '../../processes/harness.ts'
import { eventually } from '../../support/eventually.ts'
import { removeFolder } from '../../support/folders.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memoryStore.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { temporaryDirectory } from '../../support/service.ts'
import { createVirtualWorld } from '../../support/virtualWorld.ts'
import { ledger as command } from './fixtures.ts'

const EVENTS = 10
const AT_MS = Date.parse('2026-01-01T00:00:00.000Z')

/** A log with these events, as an event store has it after someone has changed its database. */
const storeOf = (events: readonly StoredEvent[]): EventStore => ({
  ...createMemoryLog().open(),
  head: () => Promise.resolve(events.at(-1)?.position ?? 0n),
  async *readStream(stream, { from = 0n, limit = Number.MAX_SAFE_INTEGER, direction } = {}) {
    const matches = events.filter(event => event.stream === stream && event.revision >= from)
    yield* (direction === 'backwards' ? matches.toReversed() : matches).slice(0, limit)
  },
  async *subscribe() {
    for (const event of events) if (!event.stream.startsWith('$')) yield { kind: 'event', event }
    yield { kind: 'caught_up' }
  },
})

describe('the evidence check of ledger verify', () => {
  const postgres = useTestPostgres()
  const key = signingKeyOf(generateKeyPairSync('ed25519').privateKey)
  let database: Database
  let folder: string
  let log: MemoryLog
  let epoch = 0n

  const headsFile = (): string => join(folder, 'heads.jsonl')
  const start = (on: MemoryLog) => {
    epoch += 1n
    const feed = headSigningFeed({
      database,
      store: on.open(),
      world: createVirtualWorld(),
      headFile: openHeadFile(headsFile()),
      signingKey: () => Promise.resolve(key),
      everyMs: 1,
      progressed: () => undefined,
      ended: () => undefined,
    })
    return drive(feed, on, epoch)
  }
  const sign = async (on: MemoryLog, size: number): Promise<void> => {
    const run = await start(on)
    await run.processNew()
    await eventually(async () => (await lastHead(database.sql))?.tree_size === size)
    await run.stop()
  }
  const eventOf = (n: number): NewEvent => ({
    id: `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}`,
    type: 'OrderCreated',
    data: { n },
    metadata: { tenant: 'acme' },
  })
  const logOf = async (count: number): Promise<MemoryLog> => {
    const made = createMemoryLog(() => AT_MS)
    for (let n = 0; n < count; n += 1) await made.open().append(`order-${n}`, [eventOf(n)], 'no_stream')
    return made
  }
  const config = () => readConfig({ EVIDENCE_HEADS_FILE: headsFile(), LEDGER_DATA_DIR: folder })
  const verify = async (store: EventStore) => {
    const { signal } = new AbortController()
    const startProgress = progressFor({ json: true })
    // The age of a leaf is compared with the real time of its head.
    const world = { ...realWorld(), sleep: () => Promise.resolve() }
    const sources = { store, database, config: config(), world, texts: { after: '' } }
    const { findings } = await evidenceCheck.run({ ...sources, startProgress, signal })
    return findings.map(({ kind, place }) => [kind, place?.['index'] ?? place?.['position'] ?? null])
  }

  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    await createTables(database, 'evidence')
    folder = await temporaryDirectory()
    log = await logOf(EVENTS)
    await sign(log, EVENTS)
  })
  afterEach(() => removeFolder(folder))

  const changed = (change: (events: StoredEvent[]) => StoredEvent[]): EventStore => storeOf(change([...log.events]))
  const at = (n: number): StoredEvent => log.events[n] as StoredEvent

  it('finds nothing in a log as it was signed, also with newer events', async () => {
    expect(await verify(log.open())).to.deep.equal([])
    await log.open().append('order-new', [eventOf(EVENTS)], 'no_stream')
    expect(await verify(log.open())).to.deep.equal([])
  })

  it('finds that the table of heads is gone, and the file has heads', async () => {
    await database.sql('alter table evidence_heads rename to evidence_heads_gone')
    expect(await verify(log.open())).to.deep.equal([['missing', null]])
  })

  it('names a changed event, also one whose tenant or stream was changed', async () => {
    for (const change of [
      { data: { n: 99 } },
      { metadata: { tenant: 'globex' } },
      { stream: 'order-x' },
      { type: 'X' },
    ])
      expect(await verify(changed(events => events.with(3, { ...at(3), ...change })))).to.deep.equal([['edited', 3]])
  })

  it('names events that were swapped, at both places', async () => {
    const swapped = changed(events =>
      events.with(2, { ...at(6), position: at(2).position }).with(6, { ...at(2), position: at(6).position }),
    )
    expect(await verify(swapped)).to.deep.equal([
      ['reordered', 2],
      ['reordered', 6],
    ])
  })

  it('names missing events, and an added one', async () => {
    expect(await verify(changed(events => events.toSpliced(4, 2)))).to.deep.equal([['missing', 4]])
    const added = { ...at(4), id: eventOf(77).id, position: at(4).position + 1n, revision: 1n }
    expect(await verify(changed(events => events.toSpliced(5, 0, added)))).to.deep.equal([['surplus', added.position]])
  })

  it('names a log that was cut', async () => {
    expect(await verify(changed(events => events.slice(0, 7)))).to.deep.equal([['truncated', 7]])
  })

  it('names events that a setting of their stream removes, and no others beside them', async () => {
    const settings = { ...at(0), stream: `$$${at(5).stream}`, revision: 0n, data: { $tb: 1 } }
    const scavenged = changed(events => [...events.toSpliced(5, 1), { ...settings, position: at(9).position + 1n }])
    expect(await verify(scavenged)).to.deep.equal([['scavenged', 5]])
    expect(await verify(changed(events => [...events.toSpliced(4, 2), settings]))).to.deep.equal([
      ['missing', 4],
      ['scavenged', 5],
    ])
  })

  it('takes no setting of a stream for the reason of an absence that it does not permit', async () => {
    const absence = (data: StoredEvent['data'], ...newer: readonly StoredEvent[]) =>
      verify(
        changed(events => [
          ...events.toSpliced(5, 1),
          { ...at(0), stream: `$$${at(5).stream}`, revision: 0n, data },
          ...newer,
        ]),
      )
    const newer = { ...at(5), id: eventOf(60).id, revision: 3n, position: at(9).position + 1n }
    expect(await absence({ $tb: 0.5 }), 'no revision').to.deep.equal([['missing', 5]])
    expect(await absence({ $maxCount: 4 }, newer)).to.deep.equal([['missing', 5]])
    expect(await absence({ $maxCount: 3 }, newer)).to.deep.equal([['scavenged', 5]])
    expect(await absence({ $maxCount: 1 }), 'the last event of a stream is kept').to.deep.equal([['missing', 5]])
    const [signed] = await headsAfter(database.sql)
    const ageSeconds = Math.floor((Date.now() - Date.parse(signed?.time ?? '')) / 1_000)
    expect(await absence({ $maxAge: ageSeconds + 3_600 })).to.deep.equal([['missing', 5]])
    expect(await absence({ $maxAge: ageSeconds - 3_600 })).to.deep.equal([['scavenged', 5]])
  })

  it('names events that were changed together with the tables of the tree', async () => {
    await database.sql(`update evidence_leaves set hash = decode(repeat('00', 32), 'hex') where leaf = 3`)
    const findings = await verify(changed(events => events.with(3, { ...at(3), data: { n: 99 } })))
    expect(findings.map(([kind]) => kind)).to.include('edited')
  })

  it('names a head in the file that the tree does not reach or lead to', async () => {
    const head = await lastHead(database.sql)
    await appendFile(headsFile(), `${JSON.stringify({ ...head, tree_size: EVENTS + 4 })}\n`)
    const kinds = (await verify(log.open())).map(([kind]) => kind)
    expect(kinds).to.include.members(['edited', 'truncated'])
  })

  it('permits a torn last line of the file, which a killed process leaves', async () => {
    await appendFile(headsFile(), '{"tree_size":')
    expect(await verify(log.open())).to.deep.equal([])
  })

  /** A writer of Postgres cuts the tree, and plants the row of a restart. */
  const plantRestart = async (keptSize: number): Promise<void> => {
    await cutTree(database.sql, keptSize)
    await storeRestart(database.sql, {
      generation: 2,
      kept_size: keptSize,
      abandoned_size: EVENTS,
      abandoned_root: (await lastHead(database.sql))?.root ?? '',
      audit_record: randomUUID(),
      accepted_by: 'mallory',
    })
  }
  /** The head with which the generation of the planted row would begin. */
  const plantedHead = async (keptSize: number, by: SigningKey): Promise<Head> => {
    const [row] = await restartRows(database.sql)
    const { generation, accepted_by, ...restart } = row as Restart
    const begins = { ...restart, accepted: { by: accepted_by, reason: 'none', abandoned_generation: 1 } }
    const root = (await rootAt(database.sql, keptSize)).toString('hex')
    const { signature: _s, key: _k, ...first } = (await lastHead(database.sql)) as Head
    return signHead({ ...first, generation, tree_size: keptSize, root, previous_size: keptSize, restart: begins }, by)
  }

  it('names a restart that no acceptance has signed, and head signing signs nothing over the changed log', async () => {
    await plantRestart(6)
    const forged = await logOf(6)
    for (let n = 6; n < EVENTS; n += 1) await forged.open().append(`order-${n}`, [eventOf(n + 50)], 'no_stream')
    expect((await rejectionOf(start(forged))).message).to.match(/restart of generation 2, and no head that accepts it/)
    expect((await verify(forged.open())).map(([kind]) => kind)).to.deep.equal(['truncated', 'unsigned_restart'])
  })

  it('names a planted restart whose heads have a planted key, and head signing takes none of them', async () => {
    const mallory = signingKeyOf(generateKeyPairSync('ed25519').privateKey)
    await plantRestart(6)
    await storeKey(database.sql, mallory)
    await storeHead(database.sql, await plantedHead(6, mallory))
    const forged = await logOf(6)
    expect((await rejectionOf(start(forged))).name).to.equal('UntrustedHead')
    expect((await verify(forged.open())).map(([kind]) => kind)).to.deep.equal([
      'truncated',
      'edited',
      'unsigned_restart',
    ])
  })

  it('compares as far as the file of heads goes, when heads were taken from Postgres', async () => {
    await database.sql('delete from evidence_heads')
    expect(await verify(log.open())).to.deep.equal([])
    expect(await verify(changed(events => events.with(7, { ...at(7), data: { n: 99 } })))).to.deep.equal([
      ['edited', 7],
    ])
  })

  it('names a head in Postgres that nothing signed, and compares all up to the newest of the file', async () => {
    const head = (await lastHead(database.sql)) as Head
    const position = String(at(0).position)
    const root = (await rootAt(database.sql, 1)).toString('hex')
    for (const planted of [
      { ...head, generation: 99, tree_size: 1, previous_size: 0, root, position },
      { ...head, generation: 100, tree_size: 0, previous_size: 0, position: '0' },
    ]) {
      await storeHead(database.sql, planted)
      const forged = changed(events => events.with(3, { ...at(3), data: { n: 99 } }))
      expect(await verify(forged)).to.deep.include(['edited', 3])
      expect(await verify(log.open())).to.deep.equal([['edited', null]])
    }
  })

  it('names a file without heads, since Postgres alone proves nothing', async () => {
    await removeFolder(headsFile())
    expect((await verify(log.open())).map(([kind]) => kind)).to.deep.equal(['not_compared'])
  })

  describe('evidence accept', () => {
    const accept = (on: MemoryLog, store: EventStore = on.open()) => {
      const { signal } = new AbortController()
      const ledger = createLedger(store, createVirtualWorld())
      const world = { sleep: () => Promise.resolve(), now: () => AT_MS }
      return acceptLog({ ledger, database, headsFile: headsFile(), key, reason: 'a restore', world, signal })
    }

    it('accepts nothing where nothing is lost', async () => {
      expect((await rejectionOf(accept(log))).message).to.match(/nothing to accept/)
    })

    it('takes the time that a long log needs, and not that of a request', async () => {
      const requests = database
      const transaction: Database['transaction'] = (work, timeoutMs = 200) => requests.transaction(work, timeoutMs)
      await database.sql(`create function slowly() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.5); return null; end $$`)
      await database.sql('create trigger slow before delete on evidence_leaves execute function slowly()')
      database = { ...requests, transaction }
      expect(await accept(await logOf(6))).to.include({ generation: 2, kept_size: 6 })
    })

    it('waits for a follower that is behind, and accepts no cut of its log', async () => {
      const [whole, behind] = [log.open(), storeOf(log.events.slice(0, 4))]
      let calls = 0
      const follower: EventStore = {
        ...whole,
        head: () => ((calls += 1) < 3 ? behind.head() : whole.head()),
        subscribe: options => (calls < 3 ? behind : whole).subscribe(options),
      }
      expect((await rejectionOf(accept(log, follower))).message).to.match(/nothing to accept/)
    })

    it('leaves heads that an event can be proved against, and none of the abandoned ones', async () => {
      const restored = await logOf(6)
      await accept(restored)
      expect(await provableHead(database.sql)).to.include({ generation: 2, tree_size: 6 })
      expect(await headOfSize(database.sql, EVENTS)).to.equal(undefined)
      await sign(restored, 7)
      expect(await provableHead(database.sql)).to.include({ generation: 2, tree_size: 7 })
      expect(await headOfSize(database.sql, 7)).to.include({ generation: 2 })
    })

    it('leaves the age of the kept events as it was, for the settings of their streams', async () => {
      await accept(await logOf(6))
      const time = '2020-01-01T00:00:00.000Z'
      const text = `update evidence_heads set head = jsonb_set(head, '{time}', to_jsonb($1::text)) where generation = 1`
      await database.sql(text, [time])
      expect(await signedBefore(database.sql, 5)).to.equal(Date.parse(time))
      expect(await signedBefore(database.sql, 6), 'an abandoned event').to.equal(undefined)
    })

    it('takes no reason that a line of the file of heads has no place for', async () => {
      const { code, stderr } = await command(['evidence', 'accept', '--reason', 'r'.repeat(1_001)], folder)
      expect([code, stderr]).to.deep.equal([2, 'The reason has 1001 characters: 1000 are the most.\n'])
    })

    it('begins a generation of heads over a log that was restored from an older backup', async () => {
      const restored = await logOf(6)
      expect(await verify(restored.open())).to.deep.equal([['truncated', 6]])
      const restart = await accept(restored)
      expect(restart).to.include({ generation: 2, kept_size: 6, abandoned_size: EVENTS })
      const record = restored.events.at(-1)
      expect(record).to.include({ type: 'AccessGranted', id: restart.audit_record })
      expect(record?.data).to.include({
        operation: 'accept_restored_log',
        resource: `head of ${EVENTS} events: a restore`,
      })
      await sign(restored, 7)
      const [begins] = await headsAfter(database.sql, { generation: 1, tree_size: EVENTS })
      expect(begins).to.include({ generation: 2, previous_size: 6 })
      expect(begins?.restart).to.include({ kept_size: 6, abandoned_size: EVENTS, audit_record: restart.audit_record })
      await restored.open().append('order-later', [eventOf(50)], 'no_stream')
      await sign(restored, 8)
      expect(await verify(restored.open())).to.deep.equal([])
      const cut = storeOf(restored.events.slice(0, 7))
      expect(await verify(cut), 'later heads are compared too').to.deep.equal([['truncated', 7]])
    })

    it('signs who accepted which loss and why, and head signing goes on from it', async () => {
      const restored = await logOf(6)
      await accept(restored)
      const written = await openHeadFile(headsFile()).last()
      expect(written).to.include({ generation: 2, tree_size: 6, position: String(restored.events[5]?.position) })
      expect(written?.restart?.accepted).to.include({ reason: 'a restore', abandoned_generation: 1 })
      expect(isSigned(written as Head, new Map([[key.id, key.publicKey]]))).to.equal(true)
      const forged = { ...written, restart: { ...written?.restart, kept_size: 5 } } as Head
      expect(isSigned(forged, new Map([[key.id, key.publicKey]]))).to.equal(false)
      await database.sql('update evidence_restarts set kept_size = 3')
      expect(await verify(restored.open())).to.deep.equal([['edited', null]])
    })

    it('compares the heads of every generation that a restart has not abandoned', async () => {
      await writeFile(headsFile(), '')
      await database.sql('truncate evidence_leaves, evidence_nodes, evidence_heads')
      await sign(await logOf(4), 4)
      await sign(log, EVENTS)
      const restored = await logOf(6)
      await accept(restored)
      await sign(restored, 7)
      expect(await verify(restored.open())).to.deep.equal([])
      const { signature: _s, key: _k, ...first } = (await headOfSize(database.sql, 4)) as Head
      const other = signHead({ ...first, root: 'ab'.repeat(32) }, key)
      const [, ...rest] = (await readFile(headsFile(), 'utf8')).split('\n')
      await writeFile(headsFile(), [JSON.stringify(other), ...rest].join('\n'))
      expect((await verify(restored.open())).map(([kind]) => kind)).to.include('edited')
    })

    it('keeps no events that were changed together with their leaves', async () => {
      await log.open().append('order-new', [eventOf(EVENTS)], 'no_stream')
      await sign(log, EVENTS + 1)
      const forged = await logOf(EVENTS)
      await forged.open().append('order-new', [eventOf(99)], 'no_stream')
      const hash = leafOf(forged.events[EVENTS] as StoredEvent).hash
      await database.sql('update evidence_leaves set hash = $1 where leaf = $2', [hash, BigInt(EVENTS)])
      expect(await accept(forged)).to.include({ kept_size: EVENTS, abandoned_size: EVENTS + 1 })
      await sign(forged, EVENTS + 2)
      expect(await verify(forged.open())).to.deep.equal([])
    })

    it('keeps no changed event before a missing one, where only the next head shows the change', async () => {
      await writeFile(headsFile(), '')
      await database.sql('truncate evidence_leaves, evidence_nodes, evidence_heads')
      await sign(await logOf(4), 4)
      await sign(log, EVENTS)
      const forged = { ...at(5), data: { n: 99 } } as StoredEvent
      await database.sql('update evidence_leaves set hash = $1 where leaf = 5', [leafOf(forged).hash])
      const store = changed(events => events.with(5, forged).toSpliced(7, 1))
      const appended = createMemoryLog(() => AT_MS).open()
      const readStream: EventStore['readStream'] = (stream, options) =>
        (stream.startsWith('access-') ? appended : store).readStream(stream, options)
      const { append } = appended
      expect(await accept(log, { ...store, append, readStream })).to.include({ kept_size: 4, abandoned_size: EVENTS })
    })

    it('begins again with nothing of a log whose first event was lost', async () => {
      const other = createMemoryLog(() => AT_MS)
      await other.open().append('order-x', [eventOf(70)], 'no_stream')
      expect(await accept(other)).to.include({ kept_size: 0 })
      await sign(other, 2)
      expect(await verify(other.open())).to.deep.equal([])
    })

    it('replaces a planted restart', async () => {
      await plantRestart(6)
      const restored = await logOf(EVENTS)
      expect(await accept(restored)).to.include({ generation: 2, kept_size: 6, abandoned_size: EVENTS })
      await sign(restored, EVENTS + 1)
      expect(await verify(restored.open())).to.deep.equal([])
    })

    it('is finished by the next attempt when it was killed before Postgres', async () => {
      const restored = await logOf(6)
      const { transaction } = database
      const killed = async (): Promise<never> => {
        throw new Error('killed')
      }
      database = { ...database, transaction: work => transaction(async sql => work(sql).then(killed)) }
      expect((await rejectionOf(accept(restored))).message).to.equal('killed')
      database = { ...database, transaction }
      expect((await rejectionOf(start(restored))).message).to.include('evidence accept')
      expect(await accept(restored)).to.include({ generation: 2, kept_size: 6 })
      await sign(restored, 7)
      expect(await verify(restored.open())).to.deep.equal([])
    })

    it('applies the acceptance that the file has to a Postgres from before it, and abandons nothing more', async () => {
      const tables = ['leaves', 'nodes', 'heads', 'restarts']
      for (const name of tables) await database.sql(`create table backup_${name} as select * from evidence_${name}`)
      const restored = await logOf(6)
      await accept(restored)
      await sign(restored, 7)
      await restored.open().append('order-later', [eventOf(50)], 'no_stream')
      await sign(restored, 8)
      const lines = await readFile(headsFile(), 'utf8')
      for (const name of tables) {
        await database.sql(`truncate evidence_${name}`)
        await database.sql(`insert into evidence_${name} select * from backup_${name}`)
      }
      expect((await rejectionOf(start(restored))).message).to.include('evidence accept')
      expect(await accept(restored)).to.include({ generation: 2, kept_size: 6, abandoned_size: EVENTS })
      expect(await readFile(headsFile(), 'utf8')).to.equal(lines)
      await restored.open().append('order-last', [eventOf(51)], 'no_stream')
      epoch += 1n
      await sign(restored, 9)
      expect(await verify(restored.open())).to.deep.equal([])
    })

    it('signs with the key of the service alone', async () => {
      const { signal } = new AbortController()
      const restored = await logOf(6)
      const other = signingKeyOf(generateKeyPairSync('ed25519').privateKey)
      const given = { ledger: createLedger(restored.open(), createVirtualWorld()), database, headsFile: headsFile() }
      const world = { sleep: () => Promise.resolve(), now: () => AT_MS }
      const refused = await rejectionOf(acceptLog({ ...given, key: other, reason: 'a restore', world, signal }))
      expect(refused.message).to.match(/has signed no head of this log/)
      expect(restored.events).to.have.length(6)
    })

    it('finds the record of an attempt that was killed before it changed the tree', async () => {
      const restored = await logOf(6)
      const first = await accept(restored)
      await database.sql('truncate evidence_leaves, evidence_nodes, evidence_heads, evidence_restarts')
      await removeFolder(headsFile())
      const twin = await logOf(EVENTS)
      await sign(twin, EVENTS)
      const again = await accept(restored)
      expect(again.audit_record).to.equal(first.audit_record)
      expect(restored.events).to.have.length(7)
    })
  })
})
