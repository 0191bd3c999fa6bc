import { isPersonalToken, type Texts } from '../../../src/personalTexts/personalTexts.ts'
import { PERSON } from '../clients/orders.ts'
import { REFERENCE } from '../clients/payments.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { Attempt } from '../history.ts'
import type { Engine } from '../postgres.ts'
import { type Answered, isAnswered, textOf } from './answered.ts'
import { violation, type Violation } from './violation.ts'

/** Personal texts: events have tokens in their place, equal texts have one token, and readers are shown what was written. */

type Stored = { readonly token: string; readonly tenant_id: string; readonly text: string }

const storedTexts = (engine: Engine): Promise<Stored[]> =>
  engine.query<Stored>('select token, tenant_id, text from personal_texts order by token')

/** The texts that a restore of Postgres has removed, by their tokens. Some were stored again, under other tokens. */
export type LostTexts = ReadonlyMap<string, string>

/** By token; null for a text that was lost, whether or not it was stored again. */
export const readAllTexts = async (engine: Engine, lost: LostTexts): Promise<Texts> => {
  const texts = new Set(lost.values())
  const stored = (await storedTexts(engine)).map(({ token, text }) => [token, text] as const)
  return new Map([...stored, ...lost].map(([token, text]) => [token, texts.has(text) ? null : text]))
}

/** The attempts with null for each text that was lost: answers of before show it, and later ones may not. */
export const withoutLostTexts = (attempts: readonly Attempt[], lost: LostTexts): readonly Attempt[] => {
  const texts = [...new Set(lost.values())]
  if (texts.length === 0) return attempts
  return attempts.map(attempt => {
    const { answer } = attempt
    if (answer?.body === undefined) return attempt
    const text = texts.reduce((shown, one) => shown.replaceAll(JSON.stringify(one), 'null'), answer.text)
    return { ...attempt, answer: { ...answer, text, body: JSON.parse(text) } }
  })
}

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
const answersShowIt = (answered: readonly Answered[], lost: ReadonlySet<string>): Violation[] =>
  answered
    .filter(({ answer: { status, body: shown = {} }, sent: { body = {} } }) =>
      MEMBERS.some(name => {
        const written: unknown = Reflect.get(body, name)
        if (typeof written !== 'string' || lost.has(written)) return false
        return status < 300 && status !== 202 && shown[name] !== written
      }),
    )
    .map(one => violation('a reader is shown the text that was written', `${textOf(one)} ${one.answer.text}`))

export const checkPersonalTexts = async (
  log: SimulatedLog,
  engine: Engine,
  { attempts, lostTexts }: { readonly attempts: readonly Attempt[]; readonly lostTexts: LostTexts },
): Promise<Violation[]> => [
  ...eventsHaveTokens(log, await readAllTexts(engine, lostTexts)),
  ...textsHaveOneToken(await storedTexts(engine)),
  ...answersShowIt(attempts.filter(isAnswered), new Set(lostTexts.values())),
]
