import { expect } from 'chai'
import { orderEntity, paymentEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { idOfKey } from '../../src/commands/idempotency/record.ts'
import { IdSecretLost } from '../../src/logIdentity/idSecret.ts'
import { outcomeOfKey } from '../../src/commands/idempotency/keyStatus.ts'
import { pay } from '../../src/commands/payments.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { createOrder, id, initiatePayment } from '../streams/samples.ts'
import { approveInvoice, context, newPayment, typesIn } from '../commands/fixtures.ts'

const secretStreamIn = (log: MemoryLog): string =>
  log.events.find(({ type }) => type === 'SecretMade')?.stream ?? 'none yet'

/** Each process draws different random bytes. */
let seed = 0
const processOn = (store: EventStore): Ledger => createLedger(store, createVirtualWorld((seed += 1)))

describe('the secret of ids', () => {
  let log: MemoryLog
  beforeEach(() => {
    log = createMemoryLog()
  })

  /** The log after the stream of the secret was deleted. */
  const withoutSecret = (): EventStore => {
    const store = log.open()
    const hidden = secretStreamIn(log)
    return {
      ...store,
      readStream: (stream, options) => store.readStream(stream === hidden ? 'nothing' : stream, options),
    }
  }

  it('is created at its first use, of 32 random bytes, and stays the same after restarts', async () => {
    const first = await processOn(log.open()).idSecret()
    expect(first).to.have.length(32)
    expect(await processOn(log.open()).idSecret()).to.deep.equal(first)
    expect(log.events.map(({ type }) => type)).to.deep.equal(['SecretMade'])
    expect(log.events[0]?.metadata).to.include({ tenant: 'ledger' })
  })

  it('differs from log to log', async () => {
    const other = createMemoryLog()
    expect(await processOn(log.open()).idSecret()).to.not.deep.equal(await processOn(other.open()).idSecret())
  })

  it('is the same for all processes that begin at the same time', async () => {
    const processes = Array.from({ length: 8 }, () => processOn(log.open(() => new Promise(setImmediate))))
    const secrets = await Promise.all(processes.map(ledger => ledger.idSecret()))
    for (const secret of secrets) expect(secret).to.deep.equal(secrets[0])
    expect(typesIn(log.events, secretStreamIn(log))).to.deep.equal(['SecretMade'])
  })

  it('is read once by each process', async () => {
    const reads: string[] = []
    const ledger = processOn(log.open(({ at, stream }) => void (at === 'read' && reads.push(stream))))
    await Promise.all([ledger.idSecret(), ledger.idSecret()])
    const before = reads.length
    await ledger.idSecret()
    expect(reads).to.have.length(before)
  })

  it('is created in a log with events, as long as no key has created any', async () => {
    const keyless = { command: { ...createOrder, claim: null }, context: context(), load: 'assume_empty' as const }
    await handle(processOn(log.open()), orderEntity, id('ord'), keyless)
    expect(await processOn(log.open()).idSecret()).to.have.length(32)
  })

  it('is never created again in a log where a key has created something, because that key would pay twice', async () => {
    const ledger = processOn(log.open())
    await ledger.idSecret()
    await handle(ledger, paymentEntity, id('pay'), {
      command: initiatePayment('immediate'),
      context: context(),
      load: 'assume_empty' as const,
    })
    const events = log.events.length
    const error = await rejectionOf(processOn(withoutSecret()).idSecret())
    expect(error).to.be.instanceOf(IdSecretLost).and.include({ effect: 'none' })
    expect(error).to.have.property('message').that.includes(secretStreamIn(log))
    expect(log.events).to.have.length(events)
  })

  it('is found by a process that searched the log before another process created it and paid with it', async () => {
    const store = log.open()
    let isLate = true
    const late: EventStore = {
      ...store,
      async *subscribe(options) {
        if (isLate) {
          isLate = false
          const other = processOn(log.open())
          await other.idSecret()
          await approveInvoice(other)
          await pay(other, newPayment('k-1'), context())
        }
        yield* store.subscribe(options)
      },
    }
    const secret = await processOn(late).idSecret()
    expect(secret).to.deep.equal(await processOn(log.open()).idSecret())
  })

  it('is read again after a failure', async () => {
    let isDown = true
    const ledger = processOn(
      log.open(() => {
        if (isDown) throw new Unavailable('event store', { effect: 'none', cause: new Error('down') })
      }),
    )
    expect(await rejectionOf(ledger.idSecret())).to.be.instanceOf(Unavailable)
    isDown = false
    expect(await ledger.idSecret()).to.have.length(32)
  })

  it('is not created in a log that cannot be read to its end', async () => {
    const cut = { ...log.open(), async *subscribe() {} }
    expect(await rejectionOf(processOn(cut).idSecret()))
      .to.be.instanceOf(Unavailable)
      .and.not.instanceOf(IdSecretLost)
    expect(log.events).to.deep.equal([])
  })

  it('derives the same id from a repeated key in every process', async () => {
    const ledger = processOn(log.open())
    const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'create_order' }
    const outcomeIn = async (of: Ledger, key: string) =>
      outcomeOfKey(of, 'create_order', { scope, key, secret: await of.idSecret() })
    const created = idOfKey('ord', { scope, key: 'k-1', secret: await ledger.idSecret() })
    await handle(ledger, orderEntity, created, {
      command: createOrder,
      context: context(),
      load: 'assume_empty' as const,
    })
    const restarted = processOn(log.open())
    expect(await outcomeIn(restarted, 'k-1')).to.include({ status: 'succeeded', href: `/orders/${created}` })
    expect(await outcomeIn(restarted, 'k-2')).to.deep.equal({ status: 'never_seen' })
  })
})
