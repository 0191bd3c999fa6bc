import { expect } from 'chai'
import { PAYMENT_CRASH_POINTS } from '../../src/lib/crashPoints.ts'
import { type Answer, aPayment, approvedInvoice, type Client, clientOf } from '../support/client.ts'
import { newKey, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

const AMOUNT = 900

/** The number of payments at the end, and the amount that the invoice was charged. */
type Seen = {
  readonly payments: readonly { id: string; state: string }[]
  readonly paid: number
  readonly facts: number
}

/** Sends a payment to a process that kills itself at a point; `retry` sends it again to the process of `next`. */
const crashIn = async (dying: ServiceProcess, next: () => Promise<Client>) => {
  const { invoiceId } = await approvedInvoice(await clientTo(dying), AMOUNT)
  const [key, reference] = [newKey(), `crash ${newKey()}`]
  const payment = aPayment(invoiceId, { amount: AMOUNT, reference })
  const answer = await pay(await clientTo(dying), payment, key).catch((error: unknown) => error)
  expect(answer, 'the connection breaks before a response').to.be.instanceOf(TypeError)
  expect(await dying.ended).to.equal('SIGKILL')
  const client = await next()
  const look = async (): Promise<Seen> => {
    const { items } = (await client.get(`/payments?reference=${encodeURIComponent(reference)}`)).body
    const facts = (await client.get(`/events?type=payment.succeeded&limit=100`)).body.items
    const { amount_paid } = (await client.get(`/invoices/${invoiceId}`)).body
    const ofIt = facts.filter(({ subject }: { subject: string }) => subject === items[0]?.id)
    return { payments: items, paid: amount_paid, facts: ofIt.length }
  }
  /** Once the payment has succeeded. */
  const atTheEnd = (): Promise<Seen> =>
    eventually(async () => {
      const seen = await look()
      return seen.payments[0]?.state === 'succeeded' && seen.facts > 0 && seen
    })
  const retry = (): Promise<Answer> => pay(client, payment, key)
  return { look, atTheEnd, retry }
}

const clientTo = async (service: ServiceProcess): Promise<Client> =>
  clientOf(service.api, await service.token({ tenant: 'crash' }))

describe('a process that is killed during a payment', () => {
  let dataDir: string
  let apiDir: string
  /** With the event store and Postgres. */
  let running: ServiceProcess
  let dying: ServiceProcess | undefined
  before(async () => {
    dataDir = await temporaryDirectory()
    apiDir = await temporaryDirectory()
    running = await startProcess(dataDir)
  })
  afterEach(() => dying?.end('SIGKILL'))
  after(async () => {
    await running.end('SIGKILL')
    for (const folder of [dataDir, apiDir]) await removeFolder(folder)
  })

  /** An API process beside the running one, on its stores. */
  const startApi = (env: Readonly<Record<string, string>>): Promise<ServiceProcess> => {
    const { event_store: EVENTSTORE_URL, postgres: DATABASE_URL } = running.addresses
    return startProcess(apiDir, { LEDGER_ROLES: 'api', EVENTSTORE_URL, DATABASE_URL, ...env })
  }

  for (const point of PAYMENT_CRASH_POINTS)
    it(`at ${point} has one payment after the retry with its key at another process, charged once`, async () => {
      dying = await startApi({ CRASH_AT: point })
      const { look, atTheEnd, retry } = await crashIn(dying, () => clientTo(running))
      if (point === 'before_initiation') expect(await look()).to.deep.equal({ payments: [], paid: 0, facts: 0 })
      const answer = await retry()
      expect(answer.status, answer.text).to.equal(201)
      expect(answer.headers.has('idempotent-replayed')).to.equal(point !== 'before_initiation')
      const again = await retry()
      expect([again.status, again.text]).to.deep.equal([201, answer.text])
      const seen = await atTheEnd()
      expect(seen.payments.map(({ id }) => id)).to.deep.equal([answer.body.id])
      expect(seen).to.include({ paid: AMOUNT, facts: 1 })
    })

  for (const point of ['after_initiation', 'after_reference', 'after_reservation'] as const)
    it(`at ${point} has its payment completed by the next process, without a retry`, async () => {
      await running.end('SIGKILL')
      // This one has the stores too, which end with it.
      dying = await startProcess(dataDir, { CRASH_AT: point })
      const { atTheEnd, retry } = await crashIn(dying, async () => {
        running = await startProcess(dataDir)
        return clientTo(running)
      })
      // Payment recovery waits for the grace period of the request.
      const seen = await atTheEnd()
      expect(seen.payments).to.have.lengthOf(1)
      expect(seen).to.include({ paid: AMOUNT, facts: 1 })
      const late = await retry()
      expect([late.status, late.body.id]).to.deep.equal([201, seen.payments[0]?.id])
    })
})
