import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import { anOrder, aPayment, approvedInvoice, clientOf, inParallel, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { pidsOf } from '../embedded/childProcesses.ts'
import { removeFolder } from '../support/folders.ts'
import { onOwnConnection, type Received, TruncatedResponse } from '../support/ownConnection.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

/** Two API processes and one of the feeds. */
const PROCESSES = { LEDGER_PROCESSES: '3' }
const API_PROCESSES = ['api-1', 'api-2']
const LANES = 6
const STREAMS_MAX = 20
const KEY_LIMIT = 30

const isAlive = async (pid: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // A zombie has ended; its parent has not read its status yet.
  return stat !== undefined && !/^\d+ \(.*\) Z/.test(stat)
}

/** The lines of a service that does not start, apart from the first one, which tells its exit code. */
const refusalOf = async (dataDir: string, env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
  const failed = await startProcess(dataDir, { ...PROCESSES, ...env }).then(
    service => service.end('SIGKILL').then(() => 'It started.'),
    (error: Error) => error.message,
  )
  const [first, ...lines] = failed.trim().split('\n')
  expect(first).to.include('ended (1) before it was ready')
  return lines
}

describe('a service of several processes that cannot start', () => {
  let dataDir: string
  beforeEach(async () => {
    dataDir = await temporaryDirectory()
  })
  afterEach(() => removeFolder(dataDir))

  it('prints one sentence when its port is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    expect(await refusalOf(dataDir, { PORT: String(port) })).to.deep.equal([
      `Port ${port} is already in use. Set PORT to a different port, or to 0 for any free port.`,
    ])
    taken.close()
  })

  it('prints the sentence of its processes once, and leaves none of them running', async () => {
    await mkdir(join(dataDir, 'issuer'))
    await writeFile(join(dataDir, 'issuer', 'signing-key.json'), 'no key')
    const lines = await refusalOf(dataDir, {})
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]).to.match(/^The data directory's issuer\/signing-key.json is not an ES256 key/)
    expect(await pidsOf(dataDir)).to.deep.equal([])
  })
})

describe('a service of several processes', () => {
  let dataDir: string
  let service: ServiceProcess

  const start = async (): Promise<void> => {
    // The other rates are raised.
    const RATE_LIMITS = `default=1000000/60,payments=1000000/60,auth_failures=1000000/60,api_keys=${KEY_LIMIT}/3600`
    service = await startProcess(dataDir, { ...PROCESSES, RATE_LIMITS, CONCURRENCY_LIMITS: '' })
  }
  const authorized = async (tenant: string) => ({ authorization: `Bearer ${await service.token({ tenant })}` })
  const pidsNow = async (): Promise<Addresses['pids']> => (await readAddresses(dataDir))?.pids ?? {}
  const allPids = async (): Promise<readonly number[]> => {
    const file = await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')
    return [...Object.values(await pidsNow()), Number(file.split('\n')[0])]
  }
  const kill = async (name: string): Promise<void> => {
    const pid = (await pidsNow())[name] ?? 0
    process.kill(pid, 'SIGKILL')
    await eventually(async () => !(await isAlive(pid)))
  }
  /** A process of this name that listens is another one than `before`. */
  const isReplaced = (name: string, before: number | undefined): Promise<unknown> =>
    eventually(async () => {
      const pid = (await pidsNow())[name]
      return pid !== undefined && pid !== before && (await isAlive(pid))
    })

  before(async () => {
    dataDir = await temporaryDirectory()
    await start()
  })
  after(async () => {
    await service.end('SIGKILL')
    await removeFolder(dataDir)
  })

  /** Pays until `isOver`; each payment is repeated with its key until it is answered. Resolves to the paid amount. */
  const load = async (tenant: string, isOver: () => boolean) => {
    const headers = { ...(await authorized(tenant)), 'content-type': 'application/json' }
    const client = clientOf(service.api, await service.token({ tenant }))
    const paid = new Map<string, Received>()
    const truncated: unknown[] = []
    const invoices = await inParallel(LANES, Array.from({ length: LANES }), () => approvedInvoice(client, 1_000_000))
    const payOnce = async (invoiceId: string, key: string): Promise<Received | undefined> => {
      const body = JSON.stringify(aPayment(invoiceId, { amount: 1 }))
      const sent = { method: 'POST', headers: { ...headers, 'idempotency-key': key }, body }
      return onOwnConnection(`${service.api}/payments`, sent).catch(error => {
        if (error instanceof TruncatedResponse) truncated.push(error.message)
        return undefined
      })
    }
    const lanes = invoices.map(async ({ invoiceId }) => {
      while (!isOver()) {
        const key = newKey()
        let answer: Received | undefined
        while (answer?.status !== 201 && !isOver()) answer = await payOnce(invoiceId, key)
        if (answer?.status === 201) paid.set(key, answer)
      }
    })
    const charged = async (): Promise<number> => {
      const rows = await Promise.all(invoices.map(({ invoiceId }) => client.get(`/invoices/${invoiceId}`)))
      return rows.reduce((sum, { body }) => sum + Number(body.amount_paid), 0)
    }
    return { lanes: Promise.all(lanes), paid, truncated, charged }
  }

  it('count the requests of a caller together, over any connections, and say truthfully how many are left', async () => {
    const manager = clientOf(service.api, await service.token({ tenant: 'limited' }))
    const { body } = await manager.post('/api-keys', { name: 'limited', scopes: ['orders:read'] })
    const answers = await inParallel(8, Array.from({ length: KEY_LIMIT + 10 }), () =>
      onOwnConnection(`${service.api}/orders`, { headers: { 'x-api-key': body.secret } }),
    )
    const left = answers
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(/"api_keys";r=(\d+)/.exec(String(headers['ratelimit']))?.[1]))
    expect(left.toSorted((a, b) => b - a)).to.deep.equal(Array.from({ length: KEY_LIMIT }, (_, n) => KEY_LIMIT - 1 - n))
    expect(answers.filter(({ status }) => status === 429)).to.have.lengthOf(10)
  })

  it('limit the event streams of a caller together, and release those of a process that was killed', async () => {
    const headers = { ...(await authorized('streams')), accept: 'text/event-stream' }
    const open = (): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        get(`${service.api}/events`, { headers, agent: false }, response => {
          // Streams of the process that is killed break off.
          response.on('error', () => undefined).resume()
          resolve(response)
        }).on('error', reject)
      })
    const streams = await Promise.all(Array.from({ length: STREAMS_MAX }, open))
    const refused = await Promise.all([open(), open()])
    expect(new Set(streams.map(({ statusCode }) => statusCode))).to.deep.equal(new Set([200]))
    expect(refused.map(({ statusCode }) => statusCode)).to.deep.equal([429, 429])
    const before = await pidsNow()
    await kill('api-1')
    const next = await eventually(async () => {
      const stream = await open().catch(() => undefined)
      return stream?.statusCode === 200 && stream
    })
    await isReplaced('api-1', before['api-1'])
    for (const stream of [...streams, ...refused, next]) stream.destroy()
  })

  it('refuse a revoked token at once, whichever of them revoked it', async () => {
    const { clients } = JSON.parse(await readFile(join(dataDir, 'issuer', 'clients.json'), 'utf8'))
    const { client_id, client_secret } = clients[0]
    const ask = (path: string, fields: Record<string, string>): Promise<Received> =>
      onOwnConnection(`${service.api}/oauth/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ client_id, client_secret, ...fields }).toString(),
      })
    const token = JSON.parse((await ask('token', { grant_type: 'client_credentials', scope: 'orders:read' })).text)
    const headers = { authorization: `Bearer ${token.access_token}` }
    /** On a machine under load a process may shed the request. */
    const answered = (): Promise<Received> =>
      eventually(async () => {
        const answer = await onOwnConnection(`${service.api}/orders`, { headers })
        return answer.status !== 503 && answer
      })
    const statuses = async (): Promise<readonly number[]> => {
      const answers = await Promise.all([...API_PROCESSES, ...API_PROCESSES].map(answered))
      return answers.map(({ status }) => status)
    }
    expect(await statuses()).to.deep.equal([200, 200, 200, 200])
    expect((await ask('revoke', { token: token.access_token })).status).to.equal(200)
    expect(await statuses()).to.deep.equal([401, 401, 401, 401])
  })

  it('refuse a payment before its key is used, although another of them made the payment before it', async () => {
    const tenant = 'refused'
    const headers = { ...(await authorized(tenant)), 'content-type': 'application/json' }
    const { invoiceId } = await approvedInvoice(clientOf(service.api, await service.token({ tenant })), 300)
    const key = newKey()
    const send = (payment: object, used = newKey()): Promise<Received> =>
      onOwnConnection(`${service.api}/payments`, {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': used },
        body: JSON.stringify(aPayment(invoiceId, payment)),
      })
    // Every process has the invoice in its cache, before the last payment.
    for (const _ of API_PROCESSES) expect((await send({ amount: 50 })).status).to.equal(201)
    expect((await send({ amount: 100, reference: 'once' })).status).to.equal(201)
    for (const _ of API_PROCESSES) {
      const exceeds = await send({ amount: 150 }, key)
      expect([exceeds.status, exceeds.text]).to.satisfy(
        ([status, text]: [number, string]) =>
          status === 409 && text.includes('payment_exceeds_due') && text.includes('100'),
      )
      expect((await send({ amount: 1, reference: 'once' }, key)).text).to.include('payment_reference_conflict')
    }
    // The corrected request goes through under the same key.
    expect((await send({ amount: 100 }, key)).status).to.equal(201)
  })

  it('lose nothing when an API process is killed, which is started again', async () => {
    let isOver = false
    const { lanes, paid, truncated, charged } = await load('api-killed', () => isOver)
    await eventually(async () => paid.size > 2 * LANES)
    const before = await pidsNow()
    await kill('api-2')
    const soFar = paid.size
    await isReplaced('api-2', before['api-2'])
    await eventually(async () => paid.size > soFar + 2 * LANES)
    isOver = true
    await lanes
    expect(truncated).to.deep.equal([])
    // A payment whose answer was lost at the end may be charged too; there is one such payment on each lane at most.
    expect((await charged()) - paid.size).to.be.within(0, LANES)
    expect(await pidsNow()).to.have.all.keys(Object.keys(before))
  })

  it('publish every fact when the process of the feeds is killed, and say meanwhile that it is started again', async () => {
    const client = clientOf(service.api, await service.token({ tenant: 'feeds-killed' }))
    const before = await pidsNow()
    const first = await client.post('/orders', anOrder())
    await kill('feeds')
    const second = await client.post('/orders', anOrder())
    expect([first.status, second.status]).to.deep.equal([201, 201])
    await isReplaced('feeds', before['feeds'])
    const facts = await eventually(async () => {
      const { items } = (await client.get('/events')).body
      return items.length === 2 && items
    })
    const subjects = facts.map(({ subject }: { subject: string }) => subject)
    expect(subjects).to.deep.equal([first.body.id, second.body.id])
    const states = await eventually(async () => {
      const { checks } = (await client.get('/readyz')).body
      return checks.projector === 'live' && checks
    })
    expect(states).to.include({ event_store: 'ok', postgres: 'ok', settlement: 'live', exports: 'live' })
  })

  it('give no connections to processes that hang, say so, and replace them', async () => {
    const before = await pidsNow()
    const hanging = ['api-2', 'feeds']
    const signal = (name: string, sent: NodeJS.Signals): void => void process.kill(before[name] ?? 0, sent)
    const isUp = async (): Promise<readonly (string | undefined)[]> => {
      const text = await (await fetch(service.addresses.metrics ?? '')).text()
      return hanging.map(name => new RegExp(`^ledger_process_up{process="${name}"} (\\d)$`, 'm').exec(text)?.[1])
    }
    const checks = async (): Promise<Record<string, string>> => {
      const { status, text } = await onOwnConnection(`${service.api}/readyz`, {})
      return { status: String(status), ...JSON.parse(text).checks }
    }
    expect(await isUp()).to.deep.equal(['1', '1'])
    for (const name of hanging) signal(name, 'SIGSTOP')
    try {
      await eventually(async () => (await isUp()).every(value => value === '0'))
      await eventually(async () => (await checks())['processes'] === 'not_answering')
      // Of a process that hangs a connection would end with the process, without an answer.
      const answers = await inParallel(4, Array.from({ length: 20 }), () => onOwnConnection(`${service.api}/livez`, {}))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
      for (const name of hanging) await isReplaced(name, before[name])
      await eventually(async () => (await isUp()).every(value => value === '1'))
      await eventually(async () => {
        const { status, processes, projector } = await checks()
        return status === '200' && processes === 'ok' && projector === 'live'
      })
      for (const name of hanging) expect(await isAlive(before[name] ?? 0)).to.equal(false)
      expect((await pidsNow())['api-1']).to.equal(before['api-1'])
    } finally {
      for (const name of hanging) if (await isAlive(before[name] ?? 0)) signal(name, 'SIGCONT')
    }
  })

  it('shut down gracefully at SIGTERM under load: no response ends early, no payment is lost, no process is left', async () => {
    const pids = await allPids()
    expect(pids).to.have.lengthOf(7)
    let isOver = false
    const { lanes, paid, truncated } = await load('stopped', () => isOver)
    await eventually(async () => paid.size > 2 * LANES)
    // The code tells that it ended within its time limit.
    const code = await service.end('SIGTERM')
    isOver = true
    await lanes
    expect(code, service.output()).to.equal(0)
    expect(truncated).to.deep.equal([])
    for (const pid of pids) expect(await isAlive(pid), `${pid} is left behind`).to.equal(false)
    await start()
    const headers = await authorized('stopped')
    await inParallel(LANES, [...paid.values()], async ({ text, headers: { location } }) => {
      const read = await onOwnConnection(`${service.api}${String(location)}`, { headers })
      expect([read.status, read.text]).to.deep.equal([200, text])
    })
  })

  it('leave no process and no lock behind when the primary process is killed', async () => {
    const pids = await allPids()
    await service.end('SIGKILL')
    // The next start takes the directory at once, while the processes of the last one are ending.
    await start()
    await eventually(async () => {
      const alive = await Promise.all(pids.map(isAlive))
      return !alive.includes(true)
    })
    expect((await clientOf(service.api).get('/readyz')).status).to.equal(200)
  })
})
