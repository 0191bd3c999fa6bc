import { expect } from 'chai'
import {
  createOutageNotices,
  dependencyNames,
  reportingWait,
  startRefusal,
} from '../../src/compose/dependencyNotices.ts'
import type { FeedState } from '../../src/feeds/feedLoop.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { Unavailable } from '../../src/ports.ts'
import { eventually } from '../support/eventually.ts'

const NAMES = dependencyNames({ databaseUrl: 'postgres://ann:secret@db.example:5432/ledger' })

const failing = (name: string, dependency?: Unavailable['dependency']): FeedState => ({
  ...{ name, position: 0n },
  ...(dependency ? { state: 'waiting', error: 'It did not answer.', dependency } : { state: 'live' }),
})

describe('the names of dependencies', () => {
  const databases: readonly (readonly [string, string])[] = [
    ['postgres://ann:secret@db.example:5432/ledger', 'db.example:5432'],
    ['postgres://ann:secret@db.example/ledger', 'db.example'],
    ['postgres://ann:secret@/ledger?host=/var/run', '/var/run'],
    ['/var/run ledger', 'a Unix socket'],
  ]
  for (const [databaseUrl, host] of databases)
    it(`have the host of ${databaseUrl} and no password`, () => {
      expect(dependencyNames({ databaseUrl }).database).to.equal(`Postgres at ${host} (DATABASE_URL)`)
    })

  const stores: readonly (readonly [string, string])[] = [
    ['esdb://admin:secret@a.example:2113?tls=true', 'a.example:2113'],
    ['esdb://admin:se/cr?et@a.example:2113,b.example:2113?tls=true', 'a.example:2113,b.example:2113'],
    ['esdb+discover://cluster.example', 'cluster.example'],
    ['kurrentdb+discover://admin:secret@cluster.example', 'cluster.example'],
    ['kdb://a.example:2113,b.example', 'a.example:2113,b.example'],
  ]
  for (const [eventStoreUrl, hosts] of stores)
    it(`have the hosts of ${eventStoreUrl} and no password`, () => {
      const name = `the event store at ${hosts} (EVENTSTORE_URL)`
      expect(dependencyNames({ eventStoreUrl })['event store']).to.equal(name)
    })

  it('say which ones are embedded', () => {
    expect(dependencyNames({})).to.include({
      ...{ database: 'the embedded Postgres', 'event store': 'the embedded event store' },
    })
  })
})

describe('a start that waits', () => {
  it('says for what, once the wait has lasted a moment', async () => {
    const sentences: string[] = []
    const { promise, resolve } = Promise.withResolvers<string>()
    const waiting = reportingWait(NAMES.database, sentence => sentences.push(sentence), promise)
    await eventually(() => sentences.length > 0)
    resolve('answered')
    expect(await waiting).to.equal('answered')
    expect(sentences).to.deep.equal(['Waiting for Postgres at db.example:5432 (DATABASE_URL).'])
  })

  it('ends with one sentence that has the setting, the host and the cause', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.7:5432')
    const refusal = startRefusal(new Unavailable('database', { effect: 'none', cause }), NAMES)
    expect(refusal).to.be.instanceOf(StartupError)
    expect((refusal as Error).message).to.equal(
      'Gave up waiting for Postgres at db.example:5432 (DATABASE_URL): the connection was refused (ECONNREFUSED). Start it, or correct DATABASE_URL.',
    )
  })

  it('keeps every other error, which is a bug', () => {
    const bug = new TypeError('undefined is not a function')
    expect(startRefusal(bug, NAMES)).to.equal(bug)
  })
})

describe('the notices of outages', () => {
  it('are one line for an outage, however many feeds notice it, and one for the recovery', async () => {
    const lines: string[] = []
    const report = createOutageNotices(NAMES, line => lines.push(line))
    for (const name of ['projector', 'settlement']) report(failing(name, 'database'))
    await eventually(() => lines.length > 0)
    report(failing('projector'))
    expect(lines).to.have.length(1)
    report(failing('settlement'))
    expect(lines).to.deep.equal([
      'Postgres at db.example:5432 (DATABASE_URL) does not answer; trying again.',
      'Postgres at db.example:5432 (DATABASE_URL) answers again.',
    ])
  })

  it('are one line for a feed that fails again and again, and one when it continues', () => {
    const lines: string[] = []
    const report = createOutageNotices(NAMES, line => lines.push(line))
    const stopped: FeedState = { name: 'facts_v1', position: 0n, state: 'stopped', error: 'Unknown event type' }
    for (const state of [stopped, { ...stopped, state: 'catching_up' } as const, stopped]) report(state)
    report(failing('facts_v1'))
    expect(lines).to.deep.equal([
      'The feed facts_v1 has failed: Unknown event type. Trying again; see npm run -s ledger -- doctor.',
      'The feed facts_v1 continues.',
    ])
  })

  it('do not mention a failure that is over at once', async () => {
    const lines: string[] = []
    const report = createOutageNotices(NAMES, line => lines.push(line))
    report(failing('projector', 'event store'))
    report(failing('projector'))
    report(failing('settlement', 'database'))
    await eventually(() => lines.length > 0)
    expect(lines).to.deep.equal(['Postgres at db.example:5432 (DATABASE_URL) does not answer; trying again.'])
  })
})
