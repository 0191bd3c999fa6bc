import { link, readFile, readdir, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { breadth } from '../../support/breadth.ts'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf, inParallel, pay } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService, writtenSince } from '../../support/service.ts'
import { start } from '../cli.ts'
import { camt, type Details, ntry, written } from './bankStatement/statements.ts'
import { folderWith, ledger, serving, tidyUp } from './fixtures.ts'

const TENANT = 'reconciled'

/** The lines of each status but `matched`, of which there are fourteen times as many. */
const EACH = breadth(20, 50)
const MATCHED = 14 * EACH
const EXPECTED = 10
const LINES = MATCHED + 6 * EACH
/** The lines of a report that are printed. */
const PRINTED = 100

describe('npm run ledger -- import bank-statement', () => {
  let service: TestService
  let client: Client
  let store: EventStore & { close: () => Promise<void> }

  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
    store = openEventStore({ connectionString: service.addresses.event_store ?? '' })
  })
  after(async () => {
    await store.close()
    await tidyUp()
  })

  const importing = async (path: string, ...more: readonly string[]) =>
    ledger(['import', 'bank-statement', path, '--tenant', TENANT, ...more])

  const PER_INVOICE = 25
  const GROUPS_AT_ONCE = 4
  /** Makes deferred payments of 1.00 with these references; resolves to their ids when lists have them. */
  const deferred = async (references: readonly string[]): Promise<string[]> => {
    const groups = Array.from({ length: Math.ceil(references.length / PER_INVOICE) }, (_, index) =>
      references.slice(index * PER_INVOICE, (index + 1) * PER_INVOICE),
    )
    const ids = await inParallel(GROUPS_AT_ONCE, groups, async group => {
      const { invoiceId } = await approvedInvoice(client, 10_000)
      const answers: Answer[] = []
      for (const reference of group)
        answers.push(await pay(client, aPayment(invoiceId, { reference, settlement: 'deferred' })))
      for (const { status, text } of answers) expect([201, 202], text).to.include(status)
      return answers.map(({ body }) => String(body.id))
    })
    const position = await store.head()
    await eventually(async () => {
      const headers = { 'if-min-position': position.toString(), prefer: 'wait=10' }
      return (await client.get('/payments?limit=1', headers)).status === 200
    })
    return ids.flat()
  }

  const rowsOf = async (path: string) => (await readFile(path, 'utf8')).split('\r\n').slice(1, -1)
  const counted = {
    matched: MATCHED,
    over: EACH,
    under: EACH,
    currency_mismatch: EACH,
    duplicate: EACH,
    missing: EACH,
    not_settled: 0,
    expected: EXPECTED,
    ignored: EACH,
  }
  const names = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, n) => `${prefix}-${1_000 + n}`)

  /** Lines with every status in them: single entries and batches, references in fields and in free texts. */
  const statementOf = (ids: readonly string[]): string => {
    const single = (amount: string, part: Details, more = {}) => ntry({ amount, parts: [part], ...more })
    const byReference = names('MATCH', MATCHED)
      .slice(0, 6 * EACH)
      .map(endToEndId => single('1.00', { endToEndId }))
    const byId = ids.slice(6 * EACH, 8 * EACH).map(id => single('1.00', { text: `payment ${id}, thank you` }))
    const inTexts = names('MATCH', MATCHED)
      .slice(8 * EACH)
      .map(name => ({ text: `rent ${name} of May`, amount: '1.00' }))
    const inBatch = inTexts.length / 10
    const batches = Array.from({ length: 10 }, (_, n) =>
      ntry({ amount: `${inBatch}.00`, bankId: `BATCH-${n}`, parts: inTexts.slice(n * inBatch, (n + 1) * inBatch) }),
    )
    const each = (make: (n: number) => string) => Array.from({ length: EACH }, (_, n) => make(n))
    return camt([
      ...byReference,
      ...byId,
      ...batches,
      ...each(n => single('2.00', { endToEndId: `OVER-${1_000 + (n % 5)}` }, { bankId: `O-${n}` })),
      ...each(n => single('0.50', { endToEndId: `UNDER-${1_000 + (n % 5)}` })),
      ...each(n => single('1.00', { endToEndId: `OTHER-${1_000 + (n % 5)}` }, { currency: 'EUR' })),
      ...each(n => single('1.00', { endToEndId: `MATCH-${1_000 + n}` }, { bankId: `D-${n}` })),
      ...each(n => single('1.00', { endToEndId: `NONE-${n}` })),
      ...each(n => single('1.00', { endToEndId: `FEE-${n}` }, { direction: 'DBIT' })),
    ])
  }

  it(`settles ${LINES} lines with every status in them, and changes nothing the second time`, async () => {
    const ids = await deferred(names('MATCH', MATCHED))
    await deferred([...names('OVER', 5), ...names('UNDER', 5), ...names('OTHER', 5), ...names('EXPECTED', EXPECTED)])
    const path = await written(statementOf(ids))
    const report = (name: string) => `${path}.${name}.csv`
    const before = await store.head()

    const first = await importing(path, '--json', '--report', report('first'))
    const { counts, settled_now, items } = JSON.parse(first.stdout)
    expect([first.code, counts, settled_now, items.length]).to.deep.equal([1, counted, MATCHED, LINES + EXPECTED])
    const settled = await writtenSince(store, before, TENANT)
    expect(settled.filter(type => type === 'PaymentSucceeded')).to.have.length(MATCHED)

    const head = await store.head()
    const second = await importing(path, '--report', report('second'))
    expect(await writtenSince(store, head, TENANT)).to.deep.equal([])
    expect(second.stdout)
      .to.match(new RegExp(`^matched +${MATCHED}$`, 'm'))
      .and.to.include(`… and ${LINES + EXPECTED - MATCHED - PRINTED} more: --report FILE has all.`)
    expect(second.stderr).to.include('0 payments were settled now.')
    const rows = await rowsOf(report('first'))
    expect(rows).to.have.length(LINES + EXPECTED)
    expect(await rowsOf(report('second'))).to.deep.equal(rows)
    expect((await readdir(dirname(path))).filter(name => name.endsWith('.part'))).to.deep.equal([])
  })

  it('ends with exit code 0 when every line is matched, in CSV too', async () => {
    const [id] = await deferred(['CSV-1000'])
    const path = await written('booking_date;amount;currency;reference\n2026-11-20;1.00;USD;CSV-1000\n')
    const before = await store.head()
    const dry = await importing(path, '--dry-run')
    expect(await writtenSince(store, before, TENANT)).to.deep.equal([])
    const { code, stdout, stderr } = await importing(path)
    expect([dry.code, dry.stdout]).to.deep.equal([code, stdout])
    expect(code, stderr).to.equal(0)
    expect(stdout).to.match(/^matched +1$/m)
    expect((await client.get(`/payments/${id}`)).body.state).to.equal('succeeded')
  })

  it('never writes the report over the statement, by whatever name', async () => {
    const content = 'booking_date,amount,currency,reference\n2026-11-20,1.00,USD,R-1\n'
    const path = await written(content)
    await symlink(path, `${path}.symlink`)
    await link(path, `${path}.link`)
    for (const report of [path, `${path}.symlink`, `${path}.link`]) {
      const { code, stderr } = await importing(path, '--report', report)
      expect([code, stderr]).to.deep.equal([
        2,
        `${report} is the statement itself: choose another name for the report.\n`,
      ])
    }
    expect(await readFile(path, 'utf8')).to.equal(content)
  })

  it('changes nothing when the report cannot be written, or the file is wrong', async () => {
    await deferred(['KEPT-1000'])
    const path = await written('booking_date,amount,currency,reference\n2026-11-20,1.00,USD,KEPT-1000\n')
    const before = await store.head()
    const unwritable = await importing(path, '--report', `${path}/report.csv`)
    expect([unwritable.code, unwritable.stderr]).to.deep.equal([
      2,
      `The report ${path}/report.csv cannot be written (ENOTDIR).\n`,
    ])
    const folder = await importing(path, '--report', dirname(path))
    expect(folder.stderr).to.equal(`The report ${dirname(path)} cannot be written: it is a folder.\n`)
    const wrong = await written(
      'booking_date,amount,currency,reference\n2026-11-20,1.00,USD,KEPT-1000\n2026-11-20,1.50,JPY,R\n',
    )
    const { code, stderr } = await importing(wrong, '--report', `${wrong}.csv`)
    expect(code).to.equal(2)
    expect(stderr).to.include(
      'Line 3: The amount 1.50 has more digits after the point than JPY: 0. Nothing was changed.',
    )
    expect(await readdir(dirname(wrong))).to.deep.equal(['statement'])
    expect(await writtenSince(store, before, TENANT)).to.deep.equal([])
  })

  it('names the scope that a token lacks', async () => {
    const path = await written('booking_date,amount,currency,reference\n2026-11-20,1.00,USD,R-1\n')
    const token = await service.token({ tenant: TENANT, scopes: ['orders:read'] })
    const { code, stderr } = await ledger(['import', 'bank-statement', path], undefined, { LEDGER_TOKEN: token })
    expect(code).to.equal(2)
    expect(stderr).to.include('insufficient_scope')
  })

  it('ends after Ctrl-C with the notice that the same command continues', async () => {
    const path = await written('booking_date,amount,currency,reference\n2026-11-20,1.00,USD,R-1\n')
    let requests = 0
    const api = await serving(() => void (requests += 1))
    const folder = await folderWith({ api })
    const token = await service.token({ tenant: TENANT })
    const env = { LEDGER_DATA_DIR: folder, LEDGER_TOKEN: token }
    const { child, ended } = start('ledger.ts', ['import', 'bank-statement', path, '--report', `${path}.csv`], env)
    await eventually(async () => requests > 0)
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).to.equal(130)
    expect(stderr).to.match(/Interrupted\. To continue:\n.* import bank-statement /)
    expect(await readdir(dirname(path))).to.deep.equal(['statement'])
  })

  it('documents the statuses and the form of CSV', async () => {
    const { stdout } = await ledger(['import', 'bank-statement', '--help'])
    for (const word of [...Object.keys(counted), 'booking_date', 'reversal', '--dry-run', '--json'])
      expect(stdout).to.include(word)
  })
})
