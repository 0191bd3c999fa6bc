import { expect } from 'chai'
import { PAYMENT_CRASH_POINTS, type CrashPoint } from '../../src/lib/crashPoints.ts'
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

describe('a process that is killed during a payment', () => {
  let dataDir: string
  let running: ServiceProcess | undefined
  before(async () => {
    dataDir = await temporaryDirectory()
  })
  afterEach(async () => {
    await running?.end('SIGKILL')
    running = undefined
  })
  after(() => removeFolder(dataDir))

  const start = async (env: Record<string, string> = {}): Promise<Client> => {
    running = await startProcess(dataDir, env)
    return clientOf(running.api, await running.token({ tenant: 'crash' }))
  }

  /** Sends the payment to a process that kills itself at this point, and starts another on the same data. */
  const crashAt = async (point: CrashPoint) => {
    const dying = await start({ CRASH_AT: point })
    const { invoiceId } = await approvedInvoice(dying, AMOUNT)
    const [key, reference] = [newKey(), `crash ${newKey()}`]
    const payment = aPayment(invoiceId, { amount: AMOUNT, reference })
    const answer = await pay(dying, payment, key).catch((error: unknown) => error)
    expect(answer, 'the connection breaks before a response').to.be.instanceOf(TypeError)
    expect(await running?.ended).to.equal('SIGKILL')
    const client = await start()
    const look = async (): Promise<Seen> => {
      const { items } = (await client.get(`/payments?reference=${encodeURIComponent(reference)}`)).body
      const facts = (await client.get(`/events?type=payment.succeeded&limit=100`)).body.items
      const { amount_paid } = (await client.get(`/invoices/${invoiceId}`)).body
      const ofIt = facts.filter(({ subject }: { subject: string }) => subject === items[0]?.id)
      return { payments: items, paid: amount_paid, facts: ofIt.length }
    }
    const isDone = ({ payments, facts }: Seen) => payments[0]?.state === 'succeeded' && facts > 0
    const retry = (): Promise<Answer> => pay(client, payment, key)
    return { look, isDone, retry }
  }

  for (const point of PAYMENT_CRASH_POINTS)
    it(`at ${point} has one payment after the retry with its key, charged once`, async () => {
      const { look, isDone, retry } = await crashAt(point)
      const answer = await retry()
      expect(answer.status, answer.text).to.equal(201)
      expect(answer.headers.has('idempotent-replayed')).to.equal(point !== 'before_initiation')
      const again = await retry()
      expect([again.status, again.text]).to.deep.equal([201, answer.text])
      const seen = await eventually(async () => {
        const now = await look()
        return isDone(now) && now
      })
      expect(seen.payments.map(({ id }) => id)).to.deep.equal([answer.body.id])
      expect(seen).to.include({ paid: AMOUNT, facts: 1 })
    })

  for (const point of ['after_initiation', 'after_reference', 'after_reservation'] as const)
    it(`at ${point} has its payment completed by the next process, without a retry`, async () => {
      const { look, isDone, retry } = await crashAt(point)
      // Payment recovery waits for the grace period of the request.
      const seen = await eventually(async () => {
        const now = await look()
        return isDone(now) && now
      })
      expect(seen.payments).to.have.lengthOf(1)
      expect(seen).to.include({ paid: AMOUNT, facts: 1 })
      const late = await retry()
      expect([late.status, late.body.id]).to.deep.equal([201, seen.payments[0]?.id])
    })

  it('before the idempotency record leaves nothing behind', async () => {
    const { look } = await crashAt('before_initiation')
    expect(await look()).to.deep.equal({ payments: [], paid: 0, facts: 0 })
  })
})
