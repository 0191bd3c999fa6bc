import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Addresses } from '../../src/addresses.ts'
import type { Config } from '../../src/config.ts'
import { withoutPassword } from '../ledger/connections.ts'
import { differencesIn, tableOf } from './books.ts'
import { TENANT } from './callers.ts'
import { decimalOf } from './money.ts'
import type { Performance } from './perform.ts'
import { CURRENCY } from './plan.ts'
import type { DemoService } from './service.ts'

/** What the demo tells the person at the terminal, on stdout. */

export const say = (line = ''): void => void process.stdout.write(`${line}\n`)

export const sayWhere = ({ addresses, startedHere }: DemoService, { dataDir }: Config): void => {
  const { api, event_store, postgres, kafka, issuer } = addresses
  say(startedHere ? 'Started the service for this demo.' : 'The service was running already.')
  say()
  say(`API           ${api}`)
  say(`issuer        ${issuer}`)
  say(`event store   ${event_store}`)
  say(`Postgres      ${withoutPassword(postgres)}`)
  say(`Kafka         ${kafka ?? `none; the facts are read at GET ${api}/events`}`)
  say(`data          ${dataDir}`)
  say()
}

/** Returns what is wrong, one sentence each. */
export const sayResults = (results: Performance): readonly string[] => {
  const { books, retries, factsSeen, factsBefore, duplicates } = results
  const { invoiced, paid, open, refunded } = books.lists
  const money = (amount: bigint): string => `${decimalOf(amount, CURRENCY)} ${CURRENCY}`
  const twice = books.facts.payments - books.planned.payments
  say()
  for (const line of tableOf(books)) say(line)
  say()
  say(`invoiced ${money(invoiced)}, paid ${money(paid)}, open ${money(open)}, refunded ${money(refunded)}`)
  say(`facts seen ${factsSeen}, of them new in this run ${factsSeen - factsBefore}, duplicates ${duplicates}`)
  say(`retries on purpose ${retries.sent}, answered as replays ${retries.replayed}, paid twice ${twice}`)
  const wrong = [
    ...differencesIn(books),
    ...(duplicates === 0 ? [] : [`${duplicates} facts came twice, though each has one place in the log.`]),
  ]
  if (wrong.length === 0) say('The books balance: the plan, the lists and the facts say the same.')
  return wrong
}

const DEFAULT_DATA_DIR = fileURLToPath(new URL('../../.data', import.meta.url))

export const sayNext = ({ api, pids }: Addresses, { dataDir }: Config, { played }: Performance): void => {
  const here = resolve(dataDir) === DEFAULT_DATA_DIR ? '' : `LEDGER_DATA_DIR=${dataDir} `
  const get = `curl -s -H "Authorization: Bearer $TOKEN"`
  say('What to try next:')
  say(
    `  TOKEN=$(${here}npm run -s ledger -- token --tenant ${TENANT} --subject me ` +
      '--scope "orders:read invoices:read payments:read events:read")',
  )
  say(`  ${get} "${api}/invoices?state=partially_paid&limit=3"`)
  say(`  ${get} "${api}/events?type=invoice.paid&limit=3"`)
  say(`  ${get} -N -H "Accept: text/event-stream" "${api}/events"`)
  say(`  ${here}npm run ledger -- streams show ${played[0]?.invoiceId}`)
  say(`  ${here}npm run ledger -- doctor`)
  say(`  kill ${pids['service']}   # ends the service`)
}
