import { expect } from 'chai'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { raisingVocabulary } from '../../src/logIdentity/vocabulary.ts'
import { run } from '../scripts/cli.ts'
import { diagnosisOf } from '../scripts/ledger/fixtures.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { removeFolder } from '../support/folders.ts'

/** What a release would enter in ADDED_EVENTS. */
const ADDED = { 'order/OrderArchived.v1': 2 }

describe('a build that is too old for the log', () => {
  let dataDir: string
  let service: ServiceProcess
  before(async () => {
    dataDir = await temporaryDirectory()
    service = await startProcess(dataDir)
  })
  after(async () => {
    await service.end('SIGKILL')
    await removeFolder(dataDir)
  })

  const builds = async () => {
    const { checks } = diagnosisOf(await run('ledger.ts', ['doctor', '--json'], { LEDGER_DATA_DIR: dataDir }))
    return checks.find(({ check }) => check === 'builds')
  }
  /** As a newer build does beside this one. */
  const writeAddedEvent = async (): Promise<void> => {
    const store = openEventStore({ connectionString: service.addresses.event_store })
    const event = { id: crypto.randomUUID(), type: 'OrderArchived', data: {}, metadata: { schemaVersion: 1 } }
    await raisingVocabulary(store, realWorld(), ADDED).append('order-ord_of_a_newer_build', [event], 'no_stream')
    await store.close()
  }

  it('is named by the doctor while it runs, and does not start again', async () => {
    expect(await builds()).to.include({
      status: 'ok',
      detail: 'the log needs vocabulary 1; running: 1, none too old',
    })
    await writeAddedEvent()
    const found = await builds()
    expect(found).to.include({ status: 'finding' })
    expect(found?.detail).to.match(
      new RegExp(`^The log needs vocabulary 2\\. Too old: \\S+:${service.pid} \\(api, .*\\) reads vocabulary 1\\.$`),
    )
    expect(found?.way_out).to.include('CHANGELOG.md')

    await service.end('SIGTERM')
    const refusal = await startProcess(dataDir).then(
      started => started.end('SIGKILL').then(() => 'It started.'),
      (error: Error) => error.message,
    )
    expect(refusal.trim().split('\n').slice(1)).to.deep.equal([
      'This build reads the events of vocabulary 1, and the log has events of vocabulary 2: start a release whose entry in ' +
        'CHANGELOG.md names vocabulary 2 or a later one.',
    ])
  })
})
