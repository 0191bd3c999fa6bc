import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { differencesIn } from '../../scripts/demo/books.ts'
import { type Answer, createCaller } from '../../scripts/demo/caller.ts'
import { createFactReader, missingFacts } from '../../scripts/demo/facts.ts'
import { decimalOf, minorUnitsOf } from '../../scripts/demo/money.ts'
import { planOf, type SourceInvoice, sourceSchema, sumsOf } from '../../scripts/demo/plan.ts'
import { forEach } from '../../scripts/demo/play.ts'
import { renewing } from '../../scripts/demo/tokens.ts'
import { type Addresses, readAddresses } from '../../src/addresses.ts'
import { openDataDirectory } from '../../src/embedded/dataDirectory.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { clientOf } from '../support/client.ts'
import { temporaryDirectory } from '../support/service.ts'
import { type Ended, run, start } from './cli.ts'

const FILE = new URL('../../scripts/demo/chinook-invoices.json', import.meta.url)
const sources: readonly SourceInvoice[] = sourceSchema.parse(JSON.parse(readFileSync(FILE, 'utf8')))

describe('the amounts of the demo', () => {
  for (const [decimal, currency, units] of [
    ['1.98', 'USD', 198n],
    ['0.07', 'USD', 7n],
    ['3', 'USD', 300n],
    ['3.5', 'USD', 350n],
    ['90071992547.09', 'USD', 9007199254709n],
    ['12', 'JPY', 12n],
    ['1.234', 'KWD', 1234n],
  ] as const)
    it(`reads ${decimal} ${currency} as ${units} minor units`, () => {
      expect(minorUnitsOf(decimal, currency)).to.equal(units)
    })

  for (const [decimal, currency] of [
    ['1.999', 'USD'],
    ['-1.00', 'USD'],
    ['1e3', 'USD'],
    ['.5', 'USD'],
    ['1.', 'USD'],
    ['1,50', 'USD'],
    [' 1', 'USD'],
    ['', 'USD'],
    ['1.0', 'JPY'],
  ] as const)
    it(`refuses ${JSON.stringify(decimal)} in ${currency}`, () => {
      expect(() => minorUnitsOf(decimal, currency)).to.throw(RangeError)
    })

  it('writes amounts with all digits of the minor unit', () => {
    const written = [decimalOf(198n, 'USD'), decimalOf(7n, 'USD'), decimalOf(-50n, 'USD'), decimalOf(12n, 'JPY')]
    expect(written).to.deep.equal(['1.98', '0.07', '-0.50', '12'])
  })
})

describe('the plan of the demo', () => {
  const plan = planOf(sources)

  it('invoices 2328.60 USD to 412 orders, and what is paid and what is open add up to it', () => {
    const sums = sumsOf(plan)
    expect(sums).to.include({ orders: 412, invoices: 412, invoiced: 232860n })
    expect(sums.paid + sums.open).to.equal(232860n)
    expect(sums.open > 0n && sums.open < sums.paid).to.equal(true)
  })

  it('has invoices paid at once, in two parts, in part and not at all, and none paid beyond its total', () => {
    const kinds = plan.map(({ total, payments }) => {
      const paid = payments.reduce((sum, { amount }) => sum + amount, 0n)
      expect(paid <= total && payments.every(({ amount }) => amount > 0n)).to.equal(true)
      return `${payments.length} ${paid === total ? 'full' : 'open'}`
    })
    expect([...new Set(kinds)].toSorted()).to.deep.equal(['0 open', '1 full', '1 open', '2 full'])
    expect(kinds.filter(kind => kind === '1 full').length).to.be.above(412 / 2)
  })

  it('repeats every tenth payment at once and another tenth later', () => {
    const retries = plan.flatMap(({ payments }) => payments.map(({ retry }) => retry))
    expect(retries.slice(0, 11)).to.deep.equal([
      'at_once',
      ...Array.from({ length: 4 }, () => 'none'),
      'later',
      ...Array.from({ length: 4 }, () => 'none'),
      'at_once',
    ])
    expect(retries.filter(retry => retry === 'later').length).to.be.within(45, 46)
  })

  it('has one key and one reference per payment, and is the same again', () => {
    const payments = plan.flatMap(planned => planned.payments)
    expect(new Set(payments.map(({ key }) => key)).size).to.equal(payments.length)
    expect(new Set(payments.map(({ reference }) => reference)).size).to.equal(payments.length)
    expect(plan[0]?.payments[0]).to.include({ key: 'chinook-1-payment', reference: 'chinook-1' })
    expect(planOf(sources)).to.deep.equal(plan)
  })

  it('asks for the same things when only the first invoices are played', () => {
    expect(planOf(sources.slice(0, 40))).to.deep.equal(plan.slice(0, 40))
  })

  it('refuses an invoice whose lines and total disagree', () => {
    const [first] = sources
    expect(() => planOf([{ ...first!, total: '1.99' }])).to.throw(RangeError, 'invoice 1 ')
  })
})

describe('the machinery of the demo', () => {
  it('does all the work, eight items at once at most', async () => {
    const done: number[] = []
    let running = 0
    let most = 0
    await forEach(
      Array.from({ length: 50 }, (_, index) => index * 2),
      async (item, index) => {
        most = Math.max(most, ++running)
        await delay(1)
        expect(item).to.equal(index * 2)
        done.push(item)
        running -= 1
      },
    )
    expect(done.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 50 }, (_, index) => index * 2))
    expect(most).to.equal(8)
  })

  it('begins nothing more after a failure', async () => {
    const begun: number[] = []
    const work = forEach(Array.from({ length: 50 }), async (_, index) => {
      begun.push(index)
      await delay(5)
      if (index === 3) throw new Error('the fourth')
    })
    expect(await work.catch((error: Error) => error.message)).to.equal('the fourth')
    await delay(30)
    expect(begun.length).to.be.below(17)
  })

  it('mints a token once, and a new one when it is half through its life', async () => {
    let now = 0
    let minted = 0
    const token = renewing(
      async () => `token ${++minted}`,
      () => now,
    )
    expect(await Promise.all([token(), token()])).to.deep.equal(['token 1', 'token 1'])
    now = 149_000
    expect(await token()).to.equal('token 1')
    now = 150_000
    expect(await token()).to.equal('token 2')
  })

  it('follows the cursor through the facts and counts those that come twice', async () => {
    const fact = (id: string) => ({ id, type: 'invoice.paid', subject: `inv_${id}`, data: { amount_paid: 5 } })
    const pages: Readonly<Record<string, object>> = {
      '': { items: [fact('1'), fact('2')], page: { next_cursor: 'a', has_more: true } },
      a: { items: [fact('2'), fact('3')], page: { next_cursor: 'b', has_more: false } },
      b: { items: [fact('4')], page: { next_cursor: 'b', has_more: false } },
    }
    const reader = createFactReader(async ({ path }): Promise<Answer> => {
      const cursor = new URL(path, 'http://localhost').searchParams.get('cursor') ?? ''
      return { status: 200, body: pages[cursor], etag: '', location: undefined, replayed: false }
    })
    await reader.readOn()
    expect(reader.facts.map(({ id }) => id)).to.deep.equal(['1', '2', '3'])
    await reader.readOn()
    expect(reader.facts.map(({ id }) => id)).to.deep.equal(['1', '2', '3', '4'])
    expect(reader.duplicates).to.equal(1)
  })

  it('names the facts that have not arrived', () => {
    const [planned] = planOf(sources)
    const played = { planned: planned!, orderId: 'ord_1', invoiceId: 'inv_1', paymentIds: ['pay_1'] }
    const fact = (type: string, subject: string) => ({ id: type, type, subject, data: {} })
    const arrived = [fact('order.created', 'ord_1'), fact('payment.succeeded', 'pay_1'), fact('invoice.paid', 'inv_2')]
    expect(missingFacts([played], arrived)).to.deep.equal(['invoice.approved of inv_1', 'invoice.paid of inv_1'])
  })

  it('says which sum is not as planned, and by whom', () => {
    const planned = sumsOf(planOf(sources))
    expect(differencesIn({ planned, lists: planned, facts: planned })).to.deep.equal([])
    const wrong = differencesIn({ planned, lists: { ...planned, paid: 1n }, facts: { ...planned, payments: 1 } })
    expect(wrong).to.deep.equal([
      `payments: planned ${planned.payments}, the facts say 1.`,
      `paid, USD: planned ${decimalOf(planned.paid, 'USD')}, the lists say 0.01.`,
    ])
  })
})

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const withServer = async <T>(handler: Handler, work: (api: string) => Promise<T>): Promise<T> => {
  const server = createServer(handler)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const problem = (response: ServerResponse, status: number, code: string): void =>
  void response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify({ code }))

describe('a request of the demo', () => {
  const call = (handler: Handler): Promise<Answer> =>
    withServer(handler, api =>
      createCaller({ api, token: async () => 'secret', signal: AbortSignal.timeout(10_000) })({
        method: 'POST',
        path: '/payments',
        body: { amount: 1 },
        idempotencyKey: 'k1',
      }),
    )

  it('is sent again with the same key after a lost answer, a 503 and an answer that is in progress', async () => {
    const keys: unknown[] = []
    const answer = await call((request, response) => {
      keys.push(request.headers['idempotency-key'])
      if (keys.length === 1) request.socket.destroy()
      else if (keys.length === 2) problem(response, 503, 'dependency_unavailable')
      else if (keys.length === 3) problem(response, 409, 'idempotency_in_progress')
      else response.writeHead(201, { 'idempotent-replayed': 'true' }).end('{"id":"pay_1"}')
    })
    expect(answer).to.deep.include({ status: 201, replayed: true, body: { id: 'pay_1' } })
    expect(keys).to.deep.equal(['k1', 'k1', 'k1', 'k1'])
  })

  it('is not sent again when it was refused', async () => {
    let sent = 0
    const answer = await call((_, response) => {
      sent += 1
      problem(response, 409, 'payment_exceeds_due')
    })
    expect([answer.status, sent]).to.deep.equal([409, 1])
  })
})

const LIMIT = 40
const sums = sumsOf(planOf(sources.slice(0, LIMIT)))
const usd = (amount: bigint): string => `${decimalOf(amount, 'USD')} USD`
const SUMS_LINE = `invoiced ${usd(sums.invoiced)}, paid ${usd(sums.paid)}, open ${usd(sums.open)}`
const FACTS = sums.orders + sums.invoices + sums.payments + sums.settled

describe('npm run demo', function () {
  this.timeout(120_000)
  let dataDir: string
  let kept: Addresses | undefined

  before(async () => {
    dataDir = await temporaryDirectory()
  })
  after(async () => {
    if (kept !== undefined) await endService(kept)
    await rm(dataDir, { recursive: true, force: true })
  })

  const demo = (...args: string[]): Promise<Ended> =>
    run('demo/main.ts', ['--limit', String(LIMIT), ...args], { LEDGER_DATA_DIR: dataDir, PORT: '0' })

  const endService = async ({ pids }: Addresses): Promise<void> => {
    process.kill(pids['service']!, 'SIGTERM')
    // The lock is free when the service, and with it everything that it started, is gone.
    await (await openDataDirectory(dataDir, { waitMs: 30_000 })).release()
  }

  it('starts the service, plays, balances the books, and stops what it started', async () => {
    const { code, stdout, stderr } = await demo()
    expect(stderr).to.include(`${LIMIT}/${LIMIT} invoices`)
    expect(stdout).to.include(SUMS_LINE)
    expect(stdout).to.include(`facts seen ${FACTS}, of them new in this run ${FACTS}, duplicates 0`)
    expect(stdout).to.match(/retries on purpose (\d+), answered as replays \1, paid twice 0/)
    expect(code).to.equal(0)
    expect(await readAddresses(dataDir)).to.equal(undefined)
    await (await openDataDirectory(dataDir)).release()
  })

  it('ends with the same sums on the same data and pays nothing twice; --keep leaves the service', async () => {
    const { code, stdout } = await demo('--keep')
    kept = await readAddresses(dataDir)
    expect(stdout).to.include(SUMS_LINE)
    expect(stdout).to.include(`facts seen ${FACTS}, of them new in this run 0, duplicates 0`)
    expect(code).to.equal(0)
    expect((await fetch(`${kept?.api}/readyz`)).status).to.equal(200)
    const references = (await payments()).map(({ reference }) => reference)
    expect(references.length).to.equal(sums.payments)
    expect(new Set(references).size).to.equal(sums.payments)
  })

  it('plays on the service that runs already, and leaves it running', async () => {
    const { code, stdout } = await demo()
    expect(stdout).to.include('The service was running already.').and.to.include(SUMS_LINE)
    expect(code).to.equal(0)
    expect((await fetch(`${kept?.api}/livez`)).status).to.equal(200)
  })

  it('fails with a sentence for each sum that somebody else has changed', async () => {
    const client = await clientAs('somebody', 'payments:write', 'invoices:read')
    const open = (await client.get('/invoices?state=approved')).body.items[0]
    const paid = { invoice_id: open.id, amount: 1, currency: 'USD' }
    expect((await client.post('/payments', paid, { 'idempotency-key': 'by-hand' })).status).to.equal(201)
    const { code, stderr } = await demo()
    const [planned, found] = [decimalOf(sums.paid, 'USD'), decimalOf(sums.paid + 1n, 'USD')]
    expect(stderr).to.include(`paid, USD: planned ${planned}, the lists say ${found}.`)
    expect(stderr).to.include(`paid, USD: planned ${planned}, the facts say ${found}.`)
    expect(code).to.equal(1)
  })

  it('stops what it started at Ctrl-C', async () => {
    await endService(kept!)
    kept = undefined
    const { child, ended } = start('demo/main.ts', ['--keep'], { LEDGER_DATA_DIR: dataDir, PORT: '0' })
    while ((await readAddresses(dataDir)) === undefined) await delay(50)
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).to.equal(130)
    expect(stderr).to.match(/Stopping\.\n$/)
    await (await openDataDirectory(dataDir)).release()
  })

  it('says in a sentence why the service cannot start', async () => {
    const file = join(dataDir, 'a-file')
    await writeFile(file, '')
    const { code, stderr } = await run('demo/main.ts', [], { LEDGER_DATA_DIR: file })
    expect(code).to.equal(1)
    expect(stderr).to.equal(`The data directory ${file} is not a directory (EEXIST).\n`)
  })

  it('explains itself, and refuses a limit that is none', async () => {
    expect((await run('demo/main.ts', ['--help'], {})).stdout)
      .to.include('--keep')
      .and.to.include('--limit')
    expect(await run('demo/main.ts', ['--limit', '0'], {})).to.include({ code: 1, stdout: '' })
    expect(await run('demo/main.ts', ['--limit', '413'], {})).to.include({ code: 1, stdout: '' })
  })

  const clientAs = async (subject: string, ...scopes: string[]) => {
    const { api, issuer } = kept!
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
