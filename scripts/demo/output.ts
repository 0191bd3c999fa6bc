import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../src/settings/config.ts'
import { withoutPassword } from '../ledger/connections.ts'
import { bookLines, differencesInBooks } from './books.ts'
import { differencesIn, tableOf } from './reconciliation.ts'
import { TENANT } from './identities.ts'
import { decimalOf } from './money.ts'
import type { DemoResult } from './run.ts'
import { CURRENCY } from './plan.ts'
import type { DemoService } from './service.ts'

export const printLine = (line = ''): void => void process.stdout.write(`${line}\n`)

export const printAddresses = ({ addresses, startedHere }: DemoService, { dataDir }: Config): void => {
  const { api, event_store, postgres, kafka, issuer } = addresses
  printLine(startedHere ? 'Started the service for this demo.' : 'The service was running already.')
  printLine()
  printLine(`API           ${api}`)
  printLine(`issuer        ${issuer}`)
  printLine(`event store   ${event_store}`)
  printLine(`Postgres      ${withoutPassword(postgres)}`)
  printLine(`Kafka         ${kafka ?? `none; the facts are read at GET ${api}/events`}`)
  printLine(`data          ${dataDir}`)
  printLine()
}

/** Prints the results and returns the discrepancies, one sentence each. */
export const printResults = (results: DemoResult): readonly string[] => {
  const { reconciliation, books, retries, factsSeen, factsBefore, duplicates } = results
  const { invoiced, paid, open, refunded } = reconciliation.lists
  const money = (amount: bigint): string => `${decimalOf(amount, CURRENCY)} ${CURRENCY}`
  const twice = reconciliation.facts.payments - reconciliation.planned.payments
  printLine()
  for (const line of tableOf(reconciliation)) printLine(line)
  printLine()
  printLine(`invoiced ${money(invoiced)}, paid ${money(paid)}, open ${money(open)}, refunded ${money(refunded)}`)
  for (const line of bookLines(books)) printLine(line)
  printLine(`facts seen ${factsSeen}, of them new in this run ${factsSeen - factsBefore}, duplicates ${duplicates}`)
  printLine(`retries on purpose ${retries.sent}, answered as replays ${retries.replayed}, paid twice ${twice}`)
  const wrong = [
    ...differencesIn(reconciliation),
    ...differencesInBooks(books, reconciliation.planned),
    ...(duplicates === 0 ? [] : [`${duplicates} facts came twice, though each has one place in the log.`]),
  ]
  if (wrong.length === 0) printLine('All sums agree: the plan, the lists, the facts and the books.')
  return wrong
}

const DEFAULT_DATA_DIR = fileURLToPath(new URL('../../.data', import.meta.url))

export const printNextSteps = (
  { addresses: { api, pids }, startedHere }: DemoService,
  { dataDir }: Config,
  { runs }: DemoResult,
): void => {
  const here = resolve(dataDir) === DEFAULT_DATA_DIR ? '' : `LEDGER_DATA_DIR=${dataDir} `
  const get = `curl -s -H "Authorization: Bearer $TOKEN"`
  printLine('What to try next:')
  printLine(
    `  TOKEN=$(${here}npm run -s ledger -- token --tenant ${TENANT} --subject me ` +
      '--scope "orders:read invoices:read payments:read exports:read events:read ledger:read")',
  )
  printLine(`  ${get} "${api}/invoices?state=partially_paid&limit=3"`)
  printLine(`  ${get} "${api}/trial-balance"`)
  printLine(`  ${get} "${api}/events?type=invoice.paid&limit=3"`)
  printLine(`  ${get} -N -H "Accept: text/event-stream" "${api}/events"`)
  printLine(`  ${here}npm run ledger -- streams show ${runs[0]?.invoiceId}`)
  printLine(`  ${here}npm run ledger -- verify`)
  printLine(`  ${here}npm run ledger -- doctor`)
  // A service that was running before is not for the demo to end.
  if (startedHere) printLine(`  kill ${pids['service']}   # ends the service that the demo started`)
}
