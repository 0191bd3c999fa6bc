import { isPersonalToken, type Texts } from '../../../src/commands/personalTexts.ts'
import { PERSON } from '../clients/orders.ts'
import { REFERENCE } from '../clients/payments.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { History } from '../history.ts'
import type { Engine } from '../postgres.ts'
import { type Answered, isAnswered, textOf } from './answered.ts'
import { violation, type Violation } from './violation.ts'

/** Personal texts: events have tokens in their place, equal texts have one token, and readers are shown what was written. */

type Stored = { readonly token: string; readonly tenant_id: string; readonly text: string }

const storedTexts = (engine: Engine): Promise<Stored[]> =>
  engine.query<Stored>('select token, tenant_id, text from personal_texts order by token')

export const readAllTexts = async (engine: Engine): Promise<Texts> =>
  new Map((await storedTexts(engine)).map(({ token, text }) => [token, text]))

const eventsHaveTokens = (log: SimulatedLog, texts: Texts): Violation[] =>
  log.events.flatMap(({ data, stream, type }) => {
    const isStored = [data['customer_reference'], data['reference']].every(
      value => (value ?? null) === null || (isPersonalToken(value) && texts.has(value)),
    )
    const text = JSON.stringify(data)
    if (isStored && !text.includes(PERSON) && !text.includes(REFERENCE)) return []
    return [violation('an event has the token of a personal text', `${type} of ${stream} has ${JSON.stringify(data)}`)]
  })

const textsHaveOneToken = (stored: readonly Stored[]): Violation[] =>
  [...Map.groupBy(stored, ({ tenant_id, text }) => `${tenant_id} ${text}`)]
    .filter(([, same]) => same.length > 1)
    .map(([text]) => violation('equal texts have one token', text))

const MEMBERS = ['customer_reference', 'reference']

/** Only requests that succeeded, and that name a reference. */
const answersShowIt = (answered: readonly Answered[]): Violation[] =>
  answered
    .filter(({ answer: { status, body: shown = {} }, sent: { body = {} } }) =>
      MEMBERS.some(name => {
        const written: unknown = Reflect.get(body, name)
        return status < 300 && status !== 202 && typeof written === 'string' && shown[name] !== written
      }),
    )
    .map(one => violation('a reader is shown the text that was written', `${textOf(one)} ${one.answer.text}`))

export const checkPersonalTexts = async (
  log: SimulatedLog,
  engine: Engine,
  { attempts }: History,
): Promise<Violation[]> => [
  ...eventsHaveTokens(log, await readAllTexts(engine)),
  ...textsHaveOneToken(await storedTexts(engine)),
  ...answersShowIt(attempts.filter(isAnswered)),
]
