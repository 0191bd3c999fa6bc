import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf } from '../support/client.ts'
import { inParallel, newKey, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

const CLIENTS = 8
const AMOUNT = 10
const PAUSE_MS = 100
const SETTLED_MAX_MS = 4_000

/** One intended payment, and every response to it. */
type Intent = {
  readonly invoiceId: string
  readonly key: string
  readonly reference: string
  /** Whether it is sent again after a response other than 201. */
  readonly persistent: boolean
  readonly answers: { readonly answer: Answer; readonly sentAtMs: number; readonly gotAtMs: number }[]
}

describe('while eight clients pay', () => {
  let dataDir: string
  let service: ServiceProcess
  let client: Client
  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir)
    client = clientOf(service.api, await service.token({ tenant: 'faults' }))
  })
  after(async () => {
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  })

  const send = async (intent: Intent): Promise<Answer> => {
    const { invoiceId, key, reference, answers } = intent
    const sentAtMs = performance.now()
    const answer = await pay(client, aPayment(invoiceId, { amount: AMOUNT, reference }), key)
    answers.push({ answer, sentAtMs, gotAtMs: performance.now() })
    return answer
  }

  /** Pays until stopped. Three of four intents are sent until they succeed, the fourth once. */
  const payAlong = async (invoiceId: string, intents: Intent[], stop: AbortSignal): Promise<void> => {
    while (!stop.aborted) {
      const intent: Intent = {
        invoiceId,
        key: newKey(),
        reference: `fault ${newKey()}`,
        persistent: intents.length % 4 !== 3,
        answers: [],
      }
      intents.push(intent)
      while ((await send(intent)).status !== 201 && intent.persistent && !stop.aborted) await sleep(PAUSE_MS)
    }
  }

  /** Lets the clients pay, causes the fault, and lets them continue until payments have succeeded again for a second. */
  const under = async (harm: () => Promise<void>) => {
    const invoices = await inParallel(4, Array.from({ length: CLIENTS }), () => approvedInvoice(client, 1_000_000))
    const intents: Intent[] = []
    const stop = new AbortController()
    const paying = invoices.map(({ invoiceId }) => payAlong(invoiceId, intents, stop.signal))
    await sleep(1_000)
    await harm()
    const failed = () => intents.flatMap(({ answers }) => answers).filter(({ answer }) => answer.status !== 201)
    await eventually(async () => {
      const lost = failed()[0]
      const answers = lost ? intents.flatMap(intent => intent.answers) : []
      return answers.find(({ answer, sentAtMs }) => answer.status === 201 && sentAtMs > (lost?.gotAtMs ?? 0))
    })
    await sleep(1_000)
    stop.abort()
    await Promise.all(paying)
    return { intents, invoices }
  }

  const listed = async (path: string): Promise<{ id: string; reference: string; state: string; amount: number }[]> => {
    const items = []
    for (let next: string | undefined = path; next; ) {
      const page: Answer = await client.get(next)
      items.push(...page.body.items)
      next = /^<(.+)>/.exec(page.headers.get('link') ?? '')?.[1]
    }
    return items
  }

  const checkAnswers = (intents: readonly Intent[]): void => {
    const all = intents.flatMap(({ answers }) => answers.map(({ answer }) => answer))
    const statuses = new Set(all.map(({ status }) => status))
    expect([...statuses].filter(status => ![201, 202, 503, 504].includes(status))).to.deep.equal([])
    expect([...statuses], 'some request met the fault').to.include.oneOf([503, 504, 202])
    for (const { answers } of intents) {
      const made = answers.filter(({ answer }) => answer.status === 201)
      expect(new Set(made.map(({ answer }) => answer.body.id)).size).to.be.at.most(1)
    }
  }

  /** Sends every intent with an unknown effect once more; those with effect none are not sent again. */
  const resolve = async (intents: readonly Intent[]): Promise<void> => {
    const open = intents.filter(({ answers }) => answers.every(({ answer }) => answer.status !== 201))
    const untouched = open.filter(({ answers }) => answers.every(({ answer }) => answer.status === 503))
    for (const intent of open) {
      if (untouched.includes(intent) && !intent.persistent) continue
      const answer = await send(intent)
      expect(answer.status, answer.text).to.equal(201)
    }
  }

  const checkInvoices = async (intents: readonly Intent[], invoiceIds: readonly string[]): Promise<void> => {
    const made = intents.flatMap(({ answers }) => answers.find(({ answer }) => answer.status === 201)?.answer ?? [])
    for (const { text, headers } of made) {
      const read = await client.get(headers.get('location') ?? '')
      expect([read.status, read.text], 'an acknowledged payment').to.deep.equal([200, text])
    }
    const references = new Set(made.map(({ body }) => body.reference))
    for (const invoiceId of invoiceIds) {
      const own = made.filter(({ body }) => body.invoice_id === invoiceId)
      const { amount_paid, amount_pending } = (await client.get(`/invoices/${invoiceId}`)).body
      expect({ amount_paid, amount_pending }).to.deep.equal({ amount_paid: own.length * AMOUNT, amount_pending: 0 })
      const rows = await eventually(async () => {
        const now = await listed(`/payments?invoice_id=${invoiceId}&limit=100`)
        return now.length >= own.length && now.every(({ state }) => state === 'succeeded') && now
      })
      const unknown = rows.filter(({ reference }) => !references.has(reference))
      expect(unknown, 'payments without a successful response').to.deep.equal([])
      expect(rows).to.have.lengthOf(own.length)
    }
  }

  for (const [what, harm] of [
    ['the event store', async () => void process.kill(service.addresses.pids['eventstore'] ?? 0, 'SIGKILL')],
    [
      'the process that supervises Postgres',
      async () => void process.kill(service.addresses.pids['postgres'] ?? 0, 'SIGKILL'),
    ],
    [
      'the server process of Postgres',
      async () => {
        const [pid] = (await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')).split('\n')
        process.kill(Number(pid), 'SIGKILL')
      },
    ],
  ] as const)
    it(`${what} is killed: nothing acknowledged is lost, and the service recovers by itself`, async () => {
      const { intents, invoices } = await under(harm)
      checkAnswers(intents)
      await resolve(intents)
      // Payment recovery would have completed an idempotency record that a 503 had left behind by then.
      await sleep(SETTLED_MAX_MS)
      await checkInvoices(
        intents,
        invoices.map(({ invoiceId }) => invoiceId),
      )
    })
})
