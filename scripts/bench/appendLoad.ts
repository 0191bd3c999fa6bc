import { randomUUID } from 'node:crypto'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { WrongAnswers } from './answers.ts'
import { inFlight } from './measure.ts'

/** The size of the first event of a payment, including its idempotency record and metadata. */
const DATA = { invoice_id: 'inv_', amount: 100, currency: 'USD', padding: 'x'.repeat(380) }
const METADATA = { tenant: 'bench', subject: 'bench', padding: 'x'.repeat(220) }
const CHECKED_MAX = 1_000

export const appendedEvent = () => ({ id: randomUUID(), type: 'Appended', data: DATA, metadata: METADATA })

type Appended = { readonly stream: string; readonly id: string }

/** Appends of single events to new streams through the service's own client, with `lanes` appends in flight. */
export const appendLoad = (eventStoreUrl: string, lanes: number) => {
  const store = openEventStore({ connectionString: eventStoreUrl })
  const acknowledged: Appended[] = []
  const appendOne = async (): Promise<void> => {
    const event = appendedEvent()
    const stream = `bench-${randomUUID()}`
    const appended = await store.append(stream, [event], 'no_stream')
    if (!appended.ok) throw new Error('A stream with a random name was there already.')
    acknowledged.push({ stream, id: event.id })
  }
  const difference = async ({ stream, id }: Appended): Promise<string[]> => {
    const ids: string[] = []
    for await (const event of store.readStream(stream)) ids.push(event.id)
    return ids.length === 1 && ids[0] === id ? [] : [`${stream} has the events ${ids.join(', ')} instead of ${id}.`]
  }
  return {
    side: (seconds: number) => inFlight(lanes, seconds, appendOne),
    /** Reads a sample of the appended streams back. Throws if one does not hold exactly its event. */
    check: async () => {
      const every = Math.ceil(acknowledged.length / CHECKED_MAX)
      const differences: string[] = []
      for (const [index, appended] of acknowledged.entries())
        if (index % every === 0) differences.push(...(await difference(appended)))
      if (differences.length > 0) throw new WrongAnswers(differences)
    },
    close: () => store.close(),
  }
}
