import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createApi } from '../../../scripts/ledger/consume/api.ts'
import { openCopy, type State } from '../../../scripts/ledger/consume/copy.ts'
import { digestOf, type Entry, entryOf, type Fact } from '../../../scripts/ledger/consume/fact.ts'
import { verifyByManifests } from '../../../scripts/ledger/consume/verify.ts'
import { retryOf } from '../../../src/http/problems/problemCatalogue.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { emptyFolder, serving, tidyUp } from './fixtures.ts'

const TOPIC = 'ledger.order.v1'
const MANIFESTS = 'ledger.manifest.v1'

const factAt = (position: number, more: Partial<Fact> = {}): Fact => ({
  id: `fact-${position}`,
  source: '/payment-ledger',
  type: 'order.created',
  subject: `ord_${String(position).padStart(26, '0')}`,
  partitionkey: `ord_${position}`,
  sequence: '0'.repeat(20),
  position: String(position),
  tenantid: 'acme',
  data: {},
  ...more,
})

const manifestOf = (from: number, to: number, entries: readonly Entry[]) => ({
  tenantid: 'ledger',
  data: { topic: TOPIC, from_position: String(from), to_position: String(to), ...digestOf(entries) },
})

describe('the copy of ledger consume', () => {
  after(tidyUp)

  describe('from Kafka, verified by its manifests', () => {
    const facts = [factAt(3), factAt(12), factAt(17)]
    const entries = facts.map(entryOf)

    /** The findings of a copy with these lines of manifests. */
    const findingsFor = async (lines: readonly object[]) => {
      const folder = await emptyFolder()
      const text = (values: readonly object[]) => values.map(value => `${JSON.stringify(value)}\n`).join('')
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, `${TOPIC}.jsonl`), text(facts))
      await writeFile(join(folder, `${MANIFESTS}.jsonl`), text(lines))
      const topics = [TOPIC, MANIFESTS]
      const state: State = { from: 'kafka', topics, cursor: null, position: '-1', group: 'g' }
      const verified = await verifyByManifests(folder, state)
      return { ok: verified.ok, findings: verified.topics.flatMap(({ findings }) => findings), folder }
    }
    const first = manifestOf(0, 9, entries.slice(0, 1))
    const second = manifestOf(10, 20, entries.slice(1))

    it('is complete when the manifests begin at the beginning of the log', async () => {
      const { ok, findings } = await findingsFor([first, second])
      expect([ok, findings]).to.deep.equal([true, []])
    })

    it('is not proved before its first manifest, which the retention of the topic may have left', async () => {
      const { ok, findings } = await findingsFor([second])
      expect([ok, findings]).to.deep.equal([false, ['Nothing before position 10 is proved.']])
    })

    it('is of a restored ledger, whose lost facts are in the topic, when manifests overlap', async () => {
      const { ok, findings } = await findingsFor([first, second, manifestOf(10, 15, entries.slice(1, 2))])
      expect(ok).to.equal(false)
      expect(findings).to.have.length(1)
      expect(findings[0]).to.match(
        /^The manifests of positions 10 to 20 and 10 to 15 overlap: .* restored .*DISASTER\.md\.$/,
      )
    })

    it('reports a line that is no manifest', async () => {
      const { ok, findings, folder } = await findingsFor([first, { tenantid: 'ledger' }, second])
      expect([ok, findings]).to.deep.equal([false, [`Line 2 of ${join(folder, `${MANIFESTS}.jsonl`)} is no manifest.`]])
    })
  })

  describe('takes facts', () => {
    const openWith = async (from: 'http' | 'kafka', facts: readonly Fact[]) => {
      const folder = await emptyFolder()
      const before = await openCopy(folder, { from, topics: undefined }, [TOPIC])
      await before.write(facts)
      await before.close()
      return { folder, copy: await openCopy(folder, { from, topics: undefined }, [TOPIC]) }
    }

    for (const [what, from, fact] of [
      ['another tenant', 'http', factAt(9, { tenantid: 'globex' })],
      ['another source', 'kafka', factAt(9, { source: '/another-ledger' })],
      ['another log, which has another fact at its position', 'kafka', factAt(4, { id: 'another' })],
    ] as const)
      it(`of no other origin: not of ${what}, nor any with it`, async () => {
        const { folder, copy } = await openWith(from, [factAt(4)])
        const refusal = await rejectionOf(copy.write([factAt(8), fact], { cursor: 'c', position: '9' }))
        await copy.close()
        expect(refusal.message).to.include(`The fact ${fact.id} at position ${fact.position}`).and.include(folder)
        expect((await readFile(join(folder, `${TOPIC}.jsonl`), 'utf8')).split('\n')).to.have.length(2)
        expect(JSON.parse(await readFile(join(folder, 'state.json'), 'utf8'))).to.include({ position: '-1' })
      })

    it('of one log alone, although a batch has the first facts of the copy', async () => {
      const { copy } = await openWith('kafka', [])
      const refusal = await rejectionOf(copy.write([factAt(4), factAt(4), factAt(4, { id: 'another' })]))
      await copy.close()
      expect(refusal.message).to.include('The fact another at position 4').and.include('lost in a restore')
    })

    it('of all tenants from Kafka, and each once', async () => {
      const { folder, copy } = await openWith('kafka', [factAt(4)])
      await copy.write([factAt(4), factAt(8, { tenantid: 'globex' })])
      await copy.close()
      expect(copy.counts).to.deep.equal({ taken: 1, repeated: 1, late: 0 })
      expect(await readdir(folder)).to.include(`${TOPIC}.jsonl`)
    })
  })

  for (const [what, retryAfter] of [
    ['a date that has passed', 'Sun, 06 Nov 1994 08:49:37 GMT'],
    ['no pause', '0'],
    ['no time that can be read', 'soon'],
  ] as const)
    it(`is not filled by requests without a pause when Retry-After is ${what}`, async () => {
      let requests = 0
      const api = await serving((_, response) => {
        requests += 1
        response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': retryAfter })
        response.end(JSON.stringify({ code: 'overloaded', retry: retryOf('overloaded') }))
      })
      const options = { api, token: async () => 'token', signal: new AbortController().signal, retryMaxMs: 1_000 }
      await rejectionOf(createApi(options).page({ cursor: 'c' }))
      expect(requests).to.be.within(2, 5)
    })

  it('waits until the date of Retry-After', async () => {
    let requests = 0
    const api = await serving((_, response) => {
      requests += 1
      const soon = new Date(Date.now() + 3_600_000).toUTCString()
      response.writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': soon })
      response.end(JSON.stringify({ code: 'overloaded', retry: retryOf('overloaded') }))
    })
    const options = { api, token: async () => 'token', signal: new AbortController().signal, retryMaxMs: 60_000 }
    await rejectionOf(createApi(options).page({ cursor: 'c' }))
    expect(requests).to.equal(1)
  })
})
