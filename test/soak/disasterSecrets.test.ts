import { appendFile, copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EventStoreDBClient } from '@eventstore/db-client'
import { expect } from 'chai'
import { parseEvidenceKey } from '../../src/embedded/evidenceKey.ts'
import { type Head, lineOf, signHead, signingKeyOf } from '../../src/evidence/heads.ts'
import { SECRET_STREAM } from '../../src/logIdentity/idSecret.ts'
import { query } from '../embedded/childProcesses.ts'
import { anOrder } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import {
  allOf,
  expectReplays,
  headsIn,
  openStage,
  report,
  type Stage,
  stopwatch,
  TENANT,
} from '../support/disasterStage.ts'

/** The drills of DISASTER.md for lost texts, a lost secret and a stolen key. */

describe('the drills for lost and stolen secrets', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.stop())
  after(() => stage?.close())

  /** What `verify` says of references of payments, as the page says. */
  const expectLost = async (count: number): Promise<void> => {
    const { output } = await stage.follow('texts')
    expect(output).to.match(
      new RegExp(`text_lost: Of \\d+ references? in payments_v1\\.reference, ${count} have no text`),
    )
    expect(output).to.include(`in the tenants ${TENANT}, such as that of pay_`).and.include('drill 5 of')
  }

  it('5: the personal texts were lost, and come back from their dump', async () => {
    await stage.restore('texts', { log: 'now', tables: 'now' })
    await query(stage.tables(), 'truncate personal_texts')
    const client = await stage.start()
    const references = async (): Promise<unknown[]> => {
      const byId = new Map((await allOf(client, '/payments')).map(({ id, reference }) => [id, reference]))
      return [...stage.kept, ...stage.lost].map(({ answer }) => byId.get(answer.body.id))
    }
    expect(new Set(await references())).to.deep.equal(new Set([null]))
    await expectLost(stage.kept.length + stage.lost.length)
    await expectReplays(client, stage.kept.slice(0, 2))
    const elapsed = stopwatch()
    // In place of pg_restore.
    const [dump] = await query(stage.moments.backup.tables, `select jsonb_agg(t)::text as rows from personal_texts t`)
    await query(
      stage.tables(),
      `insert into personal_texts select * from jsonb_populate_recordset(null::personal_texts, $$${String(dump?.['rows'])}$$)`,
    )
    const expected = [...stage.kept.map(({ request }) => request['reference']), ...stage.lost.map(() => null)]
    await eventually(async () => JSON.stringify(await references()) === JSON.stringify(expected))
    report('5, personal texts', `RPO the texts since the dump, RTO ${elapsed()}`)
    await expectLost(stage.lost.length)
    await stage.succeed('lost', { TENANT })
    await stage.check()
  })

  it('5: the secret was lost: a running service ends, none starts, and none is told to empty its tables', async () => {
    await stage.restore('secret', { log: 'now', tables: 'now' })
    await stage.start()
    const service = stage.service()
    const store = EventStoreDBClient.connectionString(stage.store())
    await store.deleteStream(SECRET_STREAM)
    await store.dispose()
    expect(await service.ended).to.equal(1)
    const lost = /the secret of their ids is not in it: stream secret-sec_\w+\. .* pay twice\./
    expect(service.output()).to.match(lost).and.not.include('projections reset')
    expect(await stage.refusal()).to.match(lost)
  })

  describe('6: the signing key was stolen', () => {
    let stolen: ReturnType<typeof signingKeyOf>
    const file = (name: string): string => join(stage.folder, name)
    const settings = () => ({ EVIDENCE_SIGNING_KEY_FILE: file('new.pem') })
    /** A head that the thief signs now. */
    const forgedAfter = (last: Head): Head => {
      const { key: _key, signature: _signature, ...head } = last
      const size = {
        tree_size: last.tree_size + 5,
        previous_size: last.tree_size,
        root: 'ab'.repeat(32),
        consistency: [],
      }
      return signHead({ ...head, ...size }, stolen)
    }
    const signedByNewKey = () =>
      eventually(async () => {
        const last = (await headsIn(stage.dataDir())).at(-1)
        return last && last.key !== stolen.id && last
      })

    it('and is replaced: old heads remain verifiable, and the thief can add none', async () => {
      await stage.restore('key', { log: 'now', tables: 'now' })
      const heads = join(stage.dataDir(), 'evidence/heads.jsonl')
      stolen = signingKeyOf(parseEvidenceKey(await readFile(join(stage.dataDir(), 'evidence/signing-key.pem'), 'utf8')))
      await copyFile(heads, file('copy.jsonl'))
      const elapsed = stopwatch()
      await stage.succeed('rotate', { NEW_KEY: file('new.pem') })
      const client = await stage.start(settings())
      expect((await client.post('/orders', anOrder())).status).to.equal(201)
      const genuine = await signedByNewKey()
      await stage.check()
      report('6, the key', `RPO 0 events, RTO ${elapsed()}`)

      const names = { KEYS: file('keys.pem'), EXPORT: file('export'), HEADS_COPY: file('copy.jsonl') }
      expect(await stage.succeed('audit', names)).to.match(/^Intact\.$/m)
      expect((await readFile(names.KEYS, 'utf8')).match(/BEGIN PUBLIC KEY/g)).to.have.length(2)

      await query(
        stage.tables(),
        `insert into evidence_heads (generation, tree_size, head)
          values (${genuine.generation}, ${genuine.tree_size + 5}, '${JSON.stringify(forgedAfter(genuine))}')`,
      )
      const found = await stage.follow('loss')
      expect(found.output).to.match(
        /edited: In Postgres the head of \d+ events .* is not signed by the key that signed/,
      )
      await stage.stopService()
      await stage.start(settings())
      const refused =
        /^FINDING +failed feeds +sealing, .*In Postgres the head of \d+ events .* is not signed by a key of this service/m
      await eventually(async () => refused.test((await stage.follow('notice')).output))
      await query(stage.tables(), `delete from evidence_heads where tree_size = ${genuine.tree_size + 5}`)
      await stage.check()

      await appendFile(heads, `${lineOf(forgedAfter(genuine))}\n`)
      const inFile = await stage.follow('loss')
      expect(inFile.output).to.match(
        new RegExp(`replaced_key: Key ${stolen.id} signed the head of \\d+ events in line \\d+ after`),
      )
    })
  })
})
