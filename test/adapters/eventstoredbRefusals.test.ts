import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServerCredentials, status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { StoreRefused } from '../../src/adapters/eventstoredb/refusals.ts'
import { type EventStore, type FeedItem, Unavailable } from '../../src/ports.ts'
import { all, event, newStream } from '../contracts/eventStoreFixtures.ts'
import { type RefusingStore, startRefusingStore } from '../support/refusingStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { removeFolder } from '../support/folders.ts'
import { selfSigned } from '../support/selfSigned.ts'
import { temporaryDirectory } from '../support/service.ts'

/** The first item of a subscription, or its failure. */
const firstOf = async (store: EventStore): Promise<FeedItem | undefined> => {
  const stop = new AbortController()
  try {
    for await (const item of store.subscribe({ after: 'start', signal: stop.signal })) return item
    return undefined
  } finally {
    stop.abort()
  }
}

const selfSignedCredentials = (): ServerCredentials => {
  const { cert, key } = selfSigned()
  return ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }])
}

type Refusing = {
  readonly refused: string
  readonly start: () => Promise<RefusingStore>
  readonly address: (port: number) => string
}

const plain = (port: number): string => `esdb://127.0.0.1:${port}?tls=false`
const untrusted = () =>
  startRefusingStore({ code: status.OK, details: 'not reached', credentials: selfSignedCredentials() })

const cases: Readonly<Record<string, Refusing>> = {
  'refuses the credentials': {
    refused: 'credentials',
    start: () => startRefusingStore({ code: status.UNAUTHENTICATED, details: 'Not authenticated' }),
    address: plain,
  },
  'denies a permission': {
    refused: 'rights',
    start: () => startRefusingStore({ code: status.PERMISSION_DENIED, details: 'Access Denied' }),
    address: plain,
  },
  'has a certificate that is not trusted': {
    refused: 'certificate',
    start: untrusted,
    address: port => `esdb://localhost:${port}?tls=true`,
  },
  'is a cluster whose certificates are not trusted': {
    refused: 'certificate',
    start: untrusted,
    address: port => `esdb+discover://localhost:${port}?tls=true&maxDiscoverAttempts=1&discoveryInterval=50`,
  },
}

describe('EventStoreDB adapter, when the store', () => {
  let refusing: RefusingStore
  let store: EventStore

  afterEach(async () => {
    await store.close()
    await refusing.stop()
  })

  for (const [name, { refused, start, address }] of Object.entries(cases))
    it(`${name}, reports the reason without effect; a subscription yields the reason, and waits`, async () => {
      refusing = await start()
      store = openEventStore({ connectionString: address(refusing.port) })
      const failures = [await rejectionOf(store.head()), await rejectionOf(all(store.readStream(newStream())))]
      for (const failure of failures) {
        expect(failure).to.be.instanceOf(Unavailable).and.to.include({ dependency: 'event store', effect: 'none' })
        expect(failure.cause).to.be.instanceOf(StoreRefused).and.to.include({ refused })
      }
      expect(await rejectionOf(store.append(newStream(), [event()], 'no_stream')))
        .to.be.instanceOf(Unavailable)
        .and.to.include({ effect: 'none' })
      const item = await firstOf(store)
      expect(item?.kind).to.equal('interrupted')
      expect(item).to.have.property('error').instanceOf(StoreRefused).and.to.include({ refused })
    })

  it('is a cluster without a leader whose authority is trusted, does not blame its certificate', async () => {
    const { cert, key } = selfSigned()
    const folder = await temporaryDirectory()
    const caFile = join(folder, 'ca.pem')
    await writeFile(caFile, cert)
    const credentials = ServerCredentials.createSsl(null, [
      { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) },
    ])
    refusing = await startRefusingStore({ code: status.OK, details: 'not reached', credentials })
    const discovery = 'maxDiscoverAttempts=1&discoveryInterval=50'
    const connectionString = `kdb+discover://localhost:${refusing.port}?tls_ca_file=${encodeURIComponent(caFile)}&${discovery}`
    store = openEventStore({ connectionString })
    const failure = await rejectionOf(store.head())
    expect(failure.cause).to.be.instanceOf(Error).and.not.to.be.instanceOf(StoreRefused)
    expect(failure.cause).to.have.property('message').that.includes('Failed to discover')
    await removeFolder(folder)
  })

  it('refuses a subscription, throws its error', async () => {
    const details = 'Exception was thrown by handler.'
    refusing = await startRefusingStore({ code: status.UNKNOWN, details })
    store = openEventStore({ connectionString: plain(refusing.port) })
    const failure = await rejectionOf(firstOf(store))
    expect(failure).to.be.instanceOf(Error).and.to.have.property('message').that.includes(details)
    expect(failure).not.to.be.instanceOf(Unavailable)
    expect(refusing.calls()).to.equal(1)
  })
})
