import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { decimalOf } from '../../scripts/demo/money.ts'
import { planOf, sumsOf } from '../../scripts/demo/plan.ts'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import { openDataDirectory } from '../../src/embedded/dataDirectory.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryDirectory } from '../support/service.ts'
import { type Ended, run, start } from './cli.ts'
import { sources } from '../../scripts/demo/sources.ts'
import { removeFolder } from '../support/folders.ts'

const LIMIT = 40
const sums = sumsOf(planOf(sources.slice(0, LIMIT)))
const usd = (amount: bigint): string => `${decimalOf(amount, 'USD')} USD`
const SUMS_LINE = `invoiced ${usd(sums.invoiced)}, paid ${usd(sums.paid)}, open ${usd(sums.open)}`
const FACTS = sums.orders + sums.invoices + sums.payments + sums.settled + sums.refunds

describe('npm run demo', () => {
  let dataDir: string
  let kept: Addresses | undefined
  const keptService = (): Addresses => {
    if (kept === undefined) throw new Error('No service was kept.')
    return kept
  }

  before(async () => {
    dataDir = await temporaryDirectory()
  })
  after(async () => {
    const running = await readAddresses(dataDir)
    if (running !== undefined) await endService(running)
    await removeFolder(dataDir)
  })

  const demo = (...args: string[]): Promise<Ended> =>
    run('demo/main.ts', ['--limit', String(LIMIT), ...args], { LEDGER_DATA_DIR: dataDir, PORT: '0' })

  const endService = async ({ pids }: Addresses): Promise<void> => {
    expect(pids['service']).to.be.above(1)
    process.kill(Number(pids['service']), 'SIGTERM')
    // The lock is released after the service and its child processes have ended.
    await (await openDataDirectory(dataDir, { waitMs: 30_000 })).release()
  }

  it('starts the service, runs the plan, reconciles the sums, and stops what it started', async () => {
    const { code, stdout, stderr } = await demo()
    expect(code, stderr).to.equal(0)
    expect(stderr).to.include(`${LIMIT}/${LIMIT} invoices`)
    expect(stdout).to.include(SUMS_LINE)
    expect(stdout).to.include(`facts seen ${FACTS}, of them new in this run ${FACTS}, duplicates 0`)
    expect(stdout).to.match(/trial balance over \d+ accounts: USD 0\.00\n/)
    const [open, paid, invoiced] = [sums.open, sums.paid, sums.invoiced].map(amount => decimalOf(amount, 'USD'))
    expect(stdout).to.include(
      `receivables ${open} + cash ${paid} + cash-in-clearing 0.00 + write-offs 0.00 = ${invoiced} USD`,
    )
    expect(stdout).to.match(/retries on purpose (\d+), answered as replays \1, paid twice 0/)
    expect(await readAddresses(dataDir)).to.equal(undefined)
    await (await openDataDirectory(dataDir)).release()
  })

  it('has the same sums and no second payment on the same data; --keep leaves the service running', async () => {
    const { code, stdout, stderr } = await demo('--keep')
    kept = await readAddresses(dataDir)
    expect(code, stderr).to.equal(0)
    expect(stdout).to.include(SUMS_LINE)
    expect(stdout).to.include(`facts seen ${FACTS}, of them new in this run 0, duplicates 0`)
    expect((await fetch(`${keptService().api}/readyz`)).status).to.equal(200)
    const verified = await run('ledger.ts', ['verify', '--json'], { LEDGER_DATA_DIR: dataDir })
    expect(verified.code, verified.stdout + verified.stderr).to.equal(0)
    const { checks } = JSON.parse(verified.stdout) as { checks: { check: string; counts?: { postings: string } }[] }
    expect(Number(checks.find(({ check }) => check === 'books')?.counts?.postings)).to.be.above(2 * sums.payments)
    const references = (await payments()).map(({ reference }) => reference)
    expect(references.length).to.equal(sums.payments)
    expect(new Set(references).size).to.equal(sums.payments)
  })

  it('uses a service that runs already, and leaves it running', async () => {
    const { code, stdout, stderr } = await demo()
    expect(code, stderr).to.equal(0)
    expect(stdout).to.include('The service was running already.').and.to.include(SUMS_LINE)
    expect((await fetch(`${keptService().api}/livez`)).status).to.equal(200)
  })

  it('uses a service elsewhere, by its address and with tokens of its issuer', async () => {
    const { code, stdout, stderr } = await demo('--api', keptService().api)
    expect(code, stderr).to.equal(0)
    expect(stdout).to.include(SUMS_LINE).and.not.to.include('Postgres')
    expect((await fetch(`${keptService().api}/livez`)).status).to.equal(200)
  })

  it('fails with a sentence for each sum that another client has changed', async () => {
    const client = await clientAs('clerk', 'payments:write', 'invoices:read')
    const open = (await client.get('/invoices?state=approved')).body.items[0]
    const paid = { invoice_id: open.id, amount: 1, currency: 'USD' }
    expect((await client.post('/payments', paid, { 'idempotency-key': 'by-hand' })).status).to.equal(201)
    const { code, stderr } = await demo()
    const [planned, actual] = [decimalOf(sums.paid, 'USD'), decimalOf(sums.paid + 1n, 'USD')]
    expect(stderr).to.include(`paid, USD: planned ${planned}, the lists say ${actual}.`)
    expect(stderr).to.include(`paid, USD: planned ${planned}, the facts say ${actual}.`)
    expect(code).to.equal(1)
  })

  it('stops what it started at Ctrl-C', async () => {
    await endService(keptService())
    kept = undefined
    const { child, ended } = start('demo/main.ts', ['--keep'], { LEDGER_DATA_DIR: dataDir, PORT: '0' })
    // The file may be read while it is being written.
    await eventually(() => readAddresses(dataDir).catch(() => undefined))
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).to.equal(130)
    expect(stderr).to.match(/Stopping\.\n$/)
    await (await openDataDirectory(dataDir)).release()
  })

  it('prints one sentence when the service cannot start', async () => {
    const file = join(dataDir, 'a-file')
    await writeFile(file, '')
    const { code, stderr } = await run('demo/main.ts', [], { LEDGER_DATA_DIR: file })
    expect(code).to.equal(1)
    expect(stderr).to.equal(`The data directory ${file} is not a directory (EEXIST).\n`)
  })

  it('has a help text, and refuses an invalid limit', async () => {
    expect((await run('demo/main.ts', ['--help'], {})).stdout)
      .to.include('--keep')
      .and.to.include('--limit')
    expect(await run('demo/main.ts', ['--limit', '0'], {})).to.include({ code: 1, stdout: '' })
    expect(await run('demo/main.ts', ['--limit', '413'], {})).to.include({ code: 1, stdout: '' })
  })

  const clientAs = async (subject: string, ...scopes: string[]) => {
    const { api, issuer } = keptService()
    const grant = { tenant: 'chinook', subject, scopes, user: false }
    return clientOf(api, await mintDevToken({ dataDir, issuer, audience: 'payment-ledger', ...grant }))
  }

  const payments = async (): Promise<readonly { reference: string }[]> => {
    const client = await clientAs('auditor', 'payments:read')
    const { items, page } = (await client.get('/payments?limit=100')).body
    expect(page.has_more).to.equal(false)
    return items
  }
})
