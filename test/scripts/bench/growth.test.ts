import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { WrongAnswers } from '../../../scripts/bench/answers.ts'
import { checkTotals, walkPayments } from '../../../scripts/bench/growthChecks.ts'
import { type FigureName, growthRows } from '../../../scripts/bench/growthRows.ts'
import { readMemory } from '../../../scripts/bench/processes.ts'
import { temporaryDirectory } from '../../support/service.ts'
import { rejectionOf } from '../../support/rejection.ts'

describe('the memory of processes', () => {
  type Kib = { readonly rss: number; readonly pss: number; readonly shared: number }
  const processOf = async (proc: string, pid: number, parent: number, { rss, pss, shared }: Kib) => {
    await mkdir(join(proc, String(pid)), { recursive: true })
    await writeFile(
      join(proc, String(pid), 'stat'),
      `${pid} (node) S ${parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0`,
    )
    await writeFile(
      join(proc, String(pid), 'smaps_rollup'),
      `Rss:   ${rss} kB\nPss:   ${pss} kB\nPss_Shmem: ${shared} kB\n`,
    )
  }

  it('is the resident set of one process, and of several the sum of their shares, with shared memory apart', async () => {
    const proc = await temporaryDirectory()
    await processOf(proc, 10, 1, { rss: 500, pss: 300, shared: 0 })
    await processOf(proc, 20, 10, { rss: 100, pss: 60, shared: 10 })
    await processOf(proc, 21, 20, { rss: 100, pss: 40, shared: 20 })
    const groups = { service: { root: 10, without: [20] }, Postgres: { root: 20 }, Kafka: { root: 99 } }
    expect(await readMemory(groups, proc)).to.deep.equal({
      service: { own: 500 * 1024, cache: 0 },
      Postgres: { own: 70 * 1024, cache: 30 * 1024 },
    })
  })

  it('is unknown on a system without /proc', async () => {
    expect(await readMemory({ service: { root: 1 } }, join(await temporaryDirectory(), 'none'))).to.deep.equal({})
  })
})

describe('the figures of growth', () => {
  const sizeOf = (payments: number, figures: readonly (readonly [FigureName, number[]])[]) => ({
    payments,
    events: payments,
    figures: new Map(figures),
  })
  const sizes = [
    sizeOf(10, [
      ['ready', [2, 2, 2]],
      ['service', [100]],
      ['get', [1, 2]],
    ]),
    sizeOf(100, [
      ['ready', [3, 3, 3]],
      ['service', [100]],
      ['get', [1, 2]],
    ]),
    sizeOf(1_000, [
      ['ready', [4, 6, 4]],
      ['service', [120]],
      ['get', [1.1, 2.2]],
    ]),
  ]

  it('are compared at the largest size and at the smallest, and with limits of their own', () => {
    const rows = growthRows(sizes).map(({ measure, ratio, met }) => [measure, ratio?.median, met])
    expect(rows).to.deep.equal([
      ['GET /payments/{id}, each once, p50', 1.1, true],
      ['start on existing data, until ready', 2, false],
      ['start on existing data, until ready, at the largest size', undefined, true],
      ['memory of the service', 1.2, true],
    ])
  })
})

describe('the checks of growth', () => {
  const total = (payments: number, amount = payments * 100) => ({ place: 'somewhere', payments, amount })

  it('accept the same payments everywhere, and more than were made by a making that was interrupted', () => {
    checkTotals([total(5), total(5)], 5)
    checkTotals([total(6), total(6)], 5)
  })

  it('refuse payments that are missing in one place, another amount, and fewer than were made', () => {
    for (const totals of [
      [total(5), total(4)],
      [total(5), total(5, 499)],
      [total(4), total(4)],
    ])
      expect(() => checkTotals(totals, 5)).to.throw(WrongAnswers)
  })

  describe('of a whole list', () => {
    let server: Server
    let base: string
    let pages: object[][] = []
    before(async () => {
      server = createServer((request, response) => {
        const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('cursor') ?? 0)
        const body = { items: pages[page], page: { next_cursor: page + 1 < pages.length ? `${page + 1}` : null } }
        const text = JSON.stringify(body)
        response.writeHead(200, { 'content-length': Buffer.byteLength(text) }).end(text)
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    after(() => server.close())

    const item = (n: number) => ({ id: `pay_${n}`, amount: 100, created_at: `2026-01-01T00:00:0${Math.floor(n / 2)}Z` })

    it('count all pages, and keep the cursor of the last one', async () => {
      pages = [[item(5), item(4)], [item(3), item(2)], [item(1)]]
      const { totals, ids, firstId, lastCursor, lastItems } = await walkPayments(base, () => [], 2)
      expect(totals).to.include({ payments: 5, amount: 500 })
      expect({ ids, firstId, lastCursor, lastItems }).to.deep.equal({
        ids: ['pay_5', 'pay_3', 'pay_1'],
        firstId: 'pay_5',
        lastCursor: '2',
        lastItems: 1,
      })
    })

    it('refuse an item that stands twice, or in the wrong order', async () => {
      for (const wrong of [
        [
          [item(5), item(4)],
          [item(4), item(3)],
        ],
        [[item(4), item(5)]],
      ]) {
        pages = wrong
        expect(await rejectionOf(walkPayments(base, () => [], 1))).to.be.instanceOf(WrongAnswers)
      }
    })
  })
})
