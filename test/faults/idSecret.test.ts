import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { paymentEntity } from '../../src/commands/entities.ts'
import { newEventOf } from '../../src/lib/storedEvents.ts'
import { compose } from '../../src/compose/service.ts'
import { readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import { startTestNode, type TestNode } from '../embedded/eventStoreNode.ts'
import { recordedAs } from '../projections/histories.ts'
import { id, paymentInitiated } from '../streams/samples.ts'
import { temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

describe('a log without its secret of ids', () => {
  let node: TestNode
  let dataDir: string
  before(async () => {
    node = await startTestNode()
    dataDir = await temporaryDirectory()
  })
  after(async () => {
    await node.stop()
    await removeFolder(dataDir)
  })

  it('is not served: the service names the missing stream, and appends nothing', async () => {
    const store = openEventStore({ connectionString: node.address })
    const [initiated] = recordedAs<PaymentEvent>(id('pay'), [paymentInitiated('immediate')])
    if (initiated === undefined) throw new Error('There is one.')
    await store.append(`payment-${id('pay')}`, [newEventOf(paymentEntity.aggregate.codec, initiated)], 'no_stream')
    const head = await store.head()
    const settings = {
      PORT: '0',
      LEDGER_DATA_DIR: dataDir,
      EVENTSTORE_URL: node.address,
      DATABASE_URL: node.databaseUrl,
    }
    const refusal = await compose(readConfig(settings)).catch((error: unknown) => error)
    expect(refusal).to.be.instanceOf(StartupError)
    expect(refusal)
      .to.have.property('message')
      .that.matches(/secret-sec_[0-9A-Z]{26}.*pay twice/)
    expect(await store.head()).to.equal(head)
    await store.close()
  })
})
