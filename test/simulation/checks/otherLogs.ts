import { AnotherLog, checkLog } from '../../../src/logIdentity/logIdentity.ts'
import type { Compared } from '../../../src/logIdentity/logIdentity.ts'
import { SECRET_STREAM } from '../../../src/logIdentity/idSecret.ts'
import type { StoredEvent } from '../../../src/ports.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { Engine } from '../postgres.ts'
import { violation, type Violation } from './violation.ts'

/** The start-up check of the service (logIdentity.ts), tried with the log of its tables, older states of it and another log. */

const storeOf = (events: readonly StoredEvent[]): Compared['store'] => ({
  async *readStream(name, { from = 0n, limit } = {}) {
    yield* events.filter(({ stream, revision }) => stream === name && revision >= from).slice(0, limit)
  },
  head: () => Promise.resolve(events.at(-1)?.position ?? 0n),
  async *subscribe() {
    for (const event of events) yield { kind: 'event', event }
    yield { kind: 'caught_up' }
  },
})

const isRefused = async (engine: Engine, events: readonly StoredEvent[]): Promise<boolean> => {
  try {
    await checkLog({ database: { sql: engine.query }, store: storeOf(events), world: { sleep: async () => undefined } })
    return false
  } catch (error) {
    if (error instanceof AnotherLog) return true
    throw error
  }
}

const NEWEST_ROW = 'select max(position) as position from facts_v1'

export const checkOtherLogs = async ({ events }: SimulatedLog, engine: Engine): Promise<Violation[]> => {
  const [row] = await engine.query<{ position: bigint | null }>(NEWEST_ROW)
  const newest = row?.position
  if (newest === undefined || newest === null) return []
  const backup = events.filter(({ position }) => position < newest)
  // After the restore new events were written: the log is as long as the tables say, but it lacks their newest fact.
  const regrown = backup.map(event => event)
  const last = events.at(-1)
  if (last) regrown.push({ ...last, id: `${last.id.slice(0, -1)}x`, stream: 'access-another', revision: 0n })
  const another = events.map(event => (event.stream === SECRET_STREAM ? { ...event, id: `${event.id}x` } : event))
  const expected = {
    'the same log': false,
    'an older backup': true,
    'a backup that has grown': true,
    'another log': true,
  }
  const actual = {
    'the same log': await isRefused(engine, events),
    'an older backup': await isRefused(engine, backup),
    'a backup that has grown': await isRefused(engine, regrown),
    'another log': await isRefused(engine, another),
  }
  return (Object.keys(expected) as (keyof typeof expected)[])
    .filter(name => expected[name] !== actual[name])
    .map(name =>
      violation(
        'the service accepts only the log of its tables',
        `${name} is ${actual[name] ? 'refused' : 'accepted'}`,
      ),
    )
}
