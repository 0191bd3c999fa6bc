import { execFile } from 'node:child_process'
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { retryOf } from '../../../src/http/problems/problemCatalogue.ts'
import { anOrder, aPayment, approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { inParallel, newKey, pay, retryingFetch } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { start } from '../cli.ts'
import { emptyFolder, ledger, serving, tidyUp } from './fixtures.ts'
import { breadth } from '../../support/breadth.ts'

type Fact = {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly position: string
  readonly sequence: string
}
type Found = Pick<Fact, 'id' | 'type' | 'subject' | 'position'>

/** Several pages of a hundred facts. */
const ORDERS = 320
const KILLS = breadth(2, 6)

describe('ledger consume', () => {
  const tenant = `consume-${newKey().slice(0, 8)}`
  let client: Client
  let folder = ''

  before(async () => {
    const service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant }))
    await inParallel(8, Array.from({ length: ORDERS }), () => client.post('/orders', anOrder()))
    const { invoiceId } = await approvedInvoice(client, 300)
    await pay(client, aPayment(invoiceId, { amount: 100 }))
    await pay(client, aPayment(invoiceId, { amount: 200 }))
    await eventually(async () => (await served()).length === ORDERS + 5)
  })
  beforeEach(async () => {
    folder = join(await emptyFolder(), 'copy')
  })
  after(tidyUp)

  const served = async (): Promise<Fact[]> => {
    const facts: Fact[] = []
    for (let cursor = ''; ; ) {
      const { body } = await client.get(`/events?limit=100${cursor}`)
      facts.push(...body.items)
      if (body.page.has_more !== true) return facts
      cursor = `&cursor=${body.page.next_cursor}`
    }
  }
  const consume = (...args: string[]) => ledger(['consume', '--copy', folder, '--tenant', tenant, '--json', ...args])
  const verify = async (...args: string[]) => {
    const ended = await ledger(['consume', 'verify', '--copy', folder, '--tenant', tenant, '--json', ...args])
    return { ...ended, report: ended.stdout === '' ? undefined : JSON.parse(ended.stdout) }
  }
  const readState = async () => JSON.parse(await readFile(join(folder, 'state.json'), 'utf8'))
  const fileOf = (topic: string): string => join(folder, `${topic}.jsonl`)
  const linesOf = async (topic: string): Promise<string[]> =>
    (await readFile(fileOf(topic), 'utf8')).split('\n').filter(line => line !== '')
  const copied = async (): Promise<Fact[]> => {
    const files = (await readdir(folder)).filter(name => name.endsWith('.jsonl'))
    const lines = await Promise.all(files.map(name => linesOf(name.replace('.jsonl', ''))))
    const facts = lines.flat().map(line => JSON.parse(line) as Fact)
    return facts.toSorted((a, b) => Number(a.position) - Number(b.position))
  }
  /** Expects every fact once, exactly as served, in the order of its file. */
  const expectWhole = async (): Promise<void> => {
    expect(await copied()).to.deep.equal(await served())
    const positions = (await linesOf('ledger.order.v1')).map(line => Number((JSON.parse(line) as Fact).position))
    expect(positions).to.deep.equal(positions.toSorted((a, b) => a - b))
    const { code, report } = await verify()
    expect([code, report.ok]).to.deep.equal([0, true])
  }
  const contentIn = (report: { topics: { missing: Found[]; surplus: (Found & { why: string })[] }[] }) => ({
    missing: report.topics.flatMap(({ missing }) => missing),
    surplus: report.topics.flatMap(({ surplus }) => surplus),
  })
  const namesOf = ({ id, type, subject, position }: Found): Found => ({ id, type, subject, position })

  it('copies every fact once, as it was served, and verifies the copy', async () => {
    const { code, stdout } = await consume()
    expect(code).to.equal(0)
    expect(JSON.parse(stdout)).to.include({ from: 'http', taken: ORDERS + 5, repeated: 0, late: 0 })
    await expectWhole()
  })

  it('continues where it stopped', async () => {
    await consume()
    const order = await client.post('/orders', anOrder())
    await eventually(async () => (await served()).at(-1)?.subject === order.body.id)
    expect(JSON.parse((await consume()).stdout)).to.include({ taken: 1, repeated: 0 })
    await expectWhole()
  })

  it('is repaired where facts are missing or damaged, and is left as it is where it is complete', async () => {
    await consume()
    const before = await readFile(fileOf('ledger.order.v1'), 'utf8')
    expect((await consume('--repair')).stderr).to.include('The copy is complete up to its position.')
    expect(await readFile(fileOf('ledger.order.v1'), 'utf8')).to.equal(before)
    const [first = '', second = '', ...others] = await linesOf('ledger.order.v1')
    await writeFile(fileOf('ledger.order.v1'), `${[first, `${second.slice(0, 40)}"`, ...others.slice(1)].join('\n')}\n`)
    expect(JSON.parse((await consume()).stdout)).to.include({ taken: 0 })
    const incomplete = await ledger(['consume', 'verify', '--copy', folder, '--tenant', tenant])
    expect(incomplete.code).to.equal(1)
    expect(incomplete.stdout).to.include(`consume --copy ${folder} --tenant ${tenant} --repair`)
    const repaired = await consume('--repair')
    expect([repaired.code, JSON.parse(repaired.stdout).late]).to.deep.equal([0, 0])
    await expectWhole()
  })

  it(`survives ${KILLS} kills at random moments without a gap or a duplicate`, async () => {
    const { dataDir } = await sharedService()
    for (let kill = 0; kill < KILLS; kill += 1) {
      const args = ['consume', '--copy', folder, '--tenant', tenant, '--follow']
      const { child, ended } = start('ledger.ts', args, { LEDGER_DATA_DIR: dataDir })
      // The kill comes between the first write and the wait for new facts, or during that wait.
      const isBegun = () => readFile(join(folder, 'state.json'), 'utf8').then(Boolean, () => false)
      await eventually(isBegun)
      await sleep(20 + kill * 25)
      child.kill('SIGKILL')
      await ended
    }
    await consume()
    await expectWhole()
  })

  it('skips facts that it reads again after progress that was not saved', async () => {
    await consume('--topic', 'ledger.order.v1')
    const path = join(folder, 'state.json')
    const state = JSON.parse(await readFile(path, 'utf8'))
    await writeFile(path, JSON.stringify({ ...state, cursor: null, position: '-1' }))
    expect(JSON.parse((await consume()).stdout)).to.include({ taken: 0, repeated: (await copied()).length })
    expect((await verify()).report.ok).to.equal(true)
  })

  it('continues from the position after an expired cursor, and says that late facts may be missing', async () => {
    const { api } = await sharedService()
    await consume()
    const half = (await copied())[150]?.position
    await writeFile(join(folder, 'state.json'), JSON.stringify({ ...(await readState()), position: half }))
    let expired = 0
    const gate = await serving(async ({ url, headers }, response) => {
      const isExpired = url?.includes('cursor=') === true && (expired += 1) === 1
      const served = await retryingFetch(`${api}${url}`, { headers: { authorization: headers.authorization ?? '' } })
      response.writeHead(isExpired ? 400 : served.status, { 'content-type': 'application/json' })
      const problem = { code: 'cursor_expired', retry: retryOf('cursor_expired') }
      response.end(isExpired ? JSON.stringify(problem) : await served.text())
    })
    const { code, stdout, stderr } = await consume('--api', gate)
    expect(JSON.parse(stdout)).to.include({ taken: 0, repeated: (await copied()).length - 151 })
    expect(code).to.equal(1)
    expect(stderr).to.include(`npm run ledger -- consume verify --copy ${folder} names them.`)
    await expectWhole()
  })

  it('refuses a copy of another tenant, and one with a cursor that the ledger did not issue', async () => {
    await consume()
    const before = await copied()
    const other = await ledger(['consume', '--copy', folder, '--tenant', `${tenant}-other`])
    expect([other.code, other.stdout]).to.deep.equal([2, ''])
    expect(other.stderr).to.match(
      /^This copy belongs to tenant \S+ The tenant that you named has no fact .* copy into a new one\.\n$/,
    )
    await writeFile(join(folder, 'state.json'), JSON.stringify({ ...(await readState()), cursor: 'forged' }))
    const forged = await consume()
    expect([forged.code, forged.stdout]).to.deep.equal([2, ''])
    expect(forged.stderr).to.match(/^The ledger did not issue the cursor of this copy for this tenant: .*\n$/)
    expect(await copied()).to.deep.equal(before)
  })

  it('refuses a copy whose newest fact is not in the log, as after the restore of an older backup', async () => {
    await consume('--topic', 'ledger.order.v1')
    const lines = await linesOf('ledger.order.v1')
    const newest = JSON.parse(lines.at(-1) ?? '') as Fact
    const restored = lines.with(lines.length - 1, JSON.stringify({ ...newest, id: newKey() }))
    await writeFile(fileOf('ledger.order.v1'), restored.map(line => `${line}\n`).join(''))
    const { code, stderr } = await consume()
    expect(code).to.equal(2)
    expect(stderr).to.include(`at position ${newest.position}. If --tenant or --api is wrong, correct it.`)
    expect(await linesOf('ledger.order.v1')).to.deep.equal(restored)
  })

  it('removes an incomplete last line, and writes its fact again', async () => {
    await consume()
    const path = join(folder, 'state.json')
    const state = JSON.parse(await readFile(path, 'utf8'))
    const text = await readFile(fileOf('ledger.order.v1'), 'utf8')
    await writeFile(fileOf('ledger.order.v1'), text.slice(0, -40))
    await writeFile(path, JSON.stringify({ ...state, cursor: null, position: '-1' }))
    expect(JSON.parse((await consume()).stdout)).to.include({ taken: 1 })
    await expectWhole()
  })

  it('follows until Ctrl-C, and then has every fact', async () => {
    const { dataDir } = await sharedService()
    const args = ['consume', '--copy', folder, '--tenant', tenant, '--follow', '--json']
    const { child, ended } = start('ledger.ts', args, { LEDGER_DATA_DIR: dataDir })
    await eventually(async () => (await copied().catch(() => [])).length >= ORDERS + 5)
    const order = await client.post('/orders', anOrder())
    await eventually(async () => (await copied()).some(({ subject }) => subject === order.body.id))
    child.kill('SIGINT')
    const { code, stdout } = await ended
    expect(code).to.equal(0)
    expect(JSON.parse(stdout)).to.include({ repeated: 0, late: 0 })
    await expectWhole()
  })

  it('is interrupted by Ctrl-C between two pages, and the printed command continues from there', async () => {
    const { dataDir, api } = await sharedService()
    // Answers one page, and then nothing until the copy was interrupted.
    let pages = 0
    let isOpen = false
    const gate = await serving(async ({ url, headers }, response) => {
      pages += 1
      if (pages > 1 && !isOpen) return
      const served = await retryingFetch(`${api}${url}`, { headers: { authorization: headers.authorization ?? '' } })
      response.writeHead(served.status, { 'content-type': 'application/json' }).end(await served.text())
    })
    const args = ['consume', '--copy', folder, '--tenant', tenant, '--api', gate]
    const { child, ended } = start('ledger.ts', args, { LEDGER_DATA_DIR: dataDir })
    await eventually(async () => pages === 2)
    child.kill('SIGINT')
    const { code, stdout, stderr } = await ended
    expect([code, stdout]).to.deep.equal([130, ''])
    const [, command = ''] =
      /Interrupted\. To continue:\n {2}(LEDGER_DATA_DIR=.*)\n$/.exec(stderr) ?? expect.fail(stderr)
    const already = (await copied()).length
    isOpen = true
    const { stdout: words } = await promisify(execFile)('bash', ['-c', command])
    expect([already, words]).to.deep.equal([
      100,
      `${(await served()).length - 100} new facts, 0 already present, up to position ${(await readState()).position}, in ${folder}\n`,
    ])
    await expectWhole()
  })

  it('refuses a second run on the same folder, whose lines would be mixed with those of the first', async () => {
    const { dataDir } = await sharedService()
    const args = ['consume', '--copy', folder, '--tenant', tenant, '--follow', '--json']
    const { child, ended } = start('ledger.ts', args, { LEDGER_DATA_DIR: dataDir })
    await eventually(async () => (await copied().catch(() => [])).length > 0)
    const { code, stdout, stderr } = await consume()
    expect([code, stdout, stderr]).to.deep.equal([
      2,
      '',
      `Another ledger consume writes into ${folder}: wait for its end, or use another folder.\n`,
    ])
    child.kill('SIGKILL')
    await ended
    expect((await consume()).code).to.equal(0)
    await expectWhole()
  })

  it('copies only the named topics', async () => {
    const { stdout } = await consume('--topic', 'ledger.invoice.v1', '--topic', 'ledger.payment.v1')
    expect(JSON.parse(stdout)).to.include({ taken: 4 })
    const { report } = await verify()
    expect(report.ok).to.equal(true)
    expect(report.topics.map(({ topic }: { topic: string }) => topic)).to.deep.equal([
      'ledger.invoice.v1',
      'ledger.payment.v1',
    ])
    const other = await consume('--topic', 'ledger.order.v1')
    expect([other.code, other.stderr]).to.deep.equal([
      2,
      `${folder} is a copy of ledger.invoice.v1, ledger.payment.v1 from http: use another folder.\n`,
    ])
  })

  describe('verify', () => {
    const change = async (topic: string, how: (lines: string[]) => readonly string[]): Promise<void> => {
      const lines = how(await linesOf(topic))
      await writeFile(fileOf(topic), lines.map(line => `${line}\n`).join(''))
    }

    it('lists exactly the one fact that is missing', async () => {
      await consume()
      const [lost] = (await linesOf('ledger.order.v1')).slice(123, 124).map(line => JSON.parse(line) as Fact)
      if (lost === undefined) return expect.fail('there is no fact')
      await change('ledger.order.v1', lines => lines.toSpliced(123, 1))
      const { code, report } = await verify()
      expect([code, report.ok]).to.deep.equal([1, false])
      const { missing, surplus } = contentIn(report)
      expect([missing.map(namesOf), surplus]).to.deep.equal([[namesOf(lost)], []])
      const words = await ledger(['consume', 'verify', '--copy', folder, '--tenant', tenant])
      expect(words.stdout)
        .to.include(`missing: order.created for ${lost.subject} at position ${lost.position}`)
        .and.to.include(lost.id)
        .and.to.include('The copy is incomplete.')
    })

    it('lists all missing facts at any position, also those of a missing file', async () => {
      await consume()
      const orders = await linesOf('ledger.order.v1')
      const payments = (await linesOf('ledger.payment.v1')).map(line => JSON.parse(line) as Fact)
      const gone = new Set([0, 1, 99, 200, orders.length - 1])
      await change('ledger.order.v1', lines => lines.filter((_, n) => !gone.has(n)))
      await rm(fileOf('ledger.payment.v1'))
      const { code, report } = await verify()
      const lost = [...orders.filter((_, n) => gone.has(n)).map(line => JSON.parse(line) as Fact), ...payments]
      expect(code).to.equal(1)
      const { missing, surplus } = contentIn(report)
      expect(missing.map(({ id }) => id)).to.have.members(lost.map(({ id }) => id))
      expect(surplus).to.deep.equal([])
    })

    it('lists a duplicate, and a fact that is unknown to the ledger, as surplus', async () => {
      await consume()
      const [line = ''] = (await linesOf('ledger.order.v1')).slice(50, 51)
      const stray = { ...(JSON.parse(line) as Fact), id: newKey() }
      await change('ledger.order.v1', lines => lines.toSpliced(60, 0, line, JSON.stringify(stray)))
      const { code, report } = await verify()
      expect(code).to.equal(1)
      const { missing, surplus } = contentIn(report)
      expect(missing).to.deep.equal([])
      expect(surplus.map(({ id, why }) => [id, why])).to.have.deep.members([
        [(JSON.parse(line) as Fact).id, 'twice'],
        [stray.id, 'unknown to the ledger'],
      ])
    })

    it('detects an exchanged fact, although the count is equal', async () => {
      await consume()
      const [line = ''] = (await linesOf('ledger.order.v1')).slice(10, 11)
      const stray = { ...(JSON.parse(line) as Fact), id: newKey() }
      await change('ledger.order.v1', lines => lines.toSpliced(10, 1, JSON.stringify(stray)))
      const { missing, surplus } = contentIn((await verify()).report)
      expect(missing.map(namesOf)).to.deep.equal([namesOf(JSON.parse(line) as Fact)])
      expect(surplus.map(({ id }) => id)).to.deep.equal([stray.id])
    })

    it('reports a line that is not a fact', async () => {
      await consume()
      await appendFile(fileOf('ledger.invoice.v1'), '{"id":"x"}\n')
      const { code, report } = await verify()
      expect(code).to.equal(1)
      expect(report.topics.flatMap(({ findings }: { findings: string[] }) => findings)).to.deep.equal([
        `Line 3 of ${fileOf('ledger.invoice.v1')} is no fact.`,
      ])
    })
  })

  it('reports missing options in one sentence', async () => {
    const sentences = [
      [['consume', '--copy', folder], /^Name the tenant with --tenant .* LEDGER_TOKEN\.\n$/],
      [['consume', '--copy', folder, '--tenant', 'ledger'], /reserved/],
      [['consume', '--copy', folder, '--tenant', tenant, '--topic', 'invoices'], /^There is no topic "invoices": /],
      [['consume', 'verify', '--copy', join(folder, 'none'), '--tenant', tenant], /^There is no copy in /],
      [
        ['consume', '--copy', join(folder, 'k'), '--from', 'kafka'],
        /^The service publishes to no Kafka broker\. Use --from http; .*\n$/,
      ],
    ] as const
    for (const [args, sentence] of sentences) {
      const { code, stdout, stderr } = await ledger(args)
      expect([code, stdout], args.join(' ')).to.deep.equal([2, ''])
      expect(stderr).to.match(sentence)
    }
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'state.json'), '{"from":')
    expect((await verify()).stderr).to.include('is not what ledger consume wrote')
  })

  it('has a help text', async () => {
    for (const command of [['consume'], ['consume', 'verify'], ['manifest']]) {
      const { code, stdout } = await ledger([...command, '--help'])
      expect(code).to.equal(0)
      expect(stdout)
        .to.include(`Usage: ledger ${command.join(' ')}`)
        .and.to.include('--json')
    }
  })
})
