import { differencesInBooks, readBooks } from '../../scripts/demo/books.ts'
import { createFactReader, type Fact, missingFacts } from '../../scripts/demo/factReader.ts'
import { CURRENCY, sumsOf } from '../../scripts/demo/plan.ts'
import { demoIdsOf, differencesIn, sumsOfFacts, sumsOfLists } from '../../scripts/demo/reconciliation.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { partsOf } from '../../streams/aggregate.ts'
import { run } from '../scripts/cli.ts'
import { eventually } from '../support/eventually.ts'
import type { Load } from './load.ts'

/** What must hold after a rehearsal. Each check resolves to its findings, one sentence each. */

export type Check = { readonly name: string; readonly detail: string; readonly findings: readonly string[] }

const SETTLE_MAX_MS = 120_000

const readFacts = async ({ clerk, runs }: Load): Promise<readonly Fact[]> => {
  const reader = createFactReader(clerk)
  return eventually(async () => {
    await reader.readToEnd()
    return missingFacts(runs, reader.facts).length === 0 && reader.facts
  }, SETTLE_MAX_MS)
}

/** Read again until they agree, because lists lag. */
const checkSums = async ({ clerk, plan, runs }: Load, facts: readonly Fact[]): Promise<Check> => {
  const ids = demoIdsOf(runs)
  const planned = sumsOf(plan)
  let findings: readonly string[] = []
  await eventually(async () => {
    const sums = { planned, lists: await sumsOfLists(clerk, ids), facts: sumsOfFacts(facts, ids) }
    findings = [...differencesIn(sums), ...differencesInBooks(await readBooks(clerk, ids.invoices), planned)]
    return findings.length === 0
  }, SETTLE_MAX_MS).catch(() => undefined)
  const detail = `${planned.orders} orders, ${planned.payments} payments, ${planned.refunds} refunds: plan, lists, facts and books agree`
  return { name: 'sums', detail, findings }
}

/** How often each payment succeeded, by the log. */
const successesIn = async (eventStoreUrl: string): Promise<ReadonlyMap<string, number>> => {
  const store = openEventStore({ connectionString: eventStoreUrl })
  const stop = new AbortController()
  const counts = new Map<string, number>()
  for await (const item of store.subscribe({ after: 'start', categories: ['payment'], signal: stop.signal })) {
    if (item.kind === 'caught_up') break
    if (item.kind !== 'event' || item.event.type !== 'PaymentSucceeded') continue
    const { id } = partsOf(item.event.stream)
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  stop.abort()
  await store.close()
  return counts
}

/** Every key paid once: what the clients were told, what the log has, and what a repetition of each request answers. */
const checkPayments = async ({ clerk, runs }: Load, eventStoreUrl: string): Promise<Check> => {
  const inLog = await successesIn(eventStoreUrl)
  const told = new Set(runs.flatMap(({ paymentIds }) => paymentIds))
  const findings: string[] = []
  for (const id of told)
    if (inLog.get(id) !== 1) findings.push(`${id} succeeded ${inLog.get(id) ?? 0} times in the log.`)
  for (const id of inLog.keys()) if (!told.has(id)) findings.push(`${id} is in the log, and no client knows it.`)
  for (const { planned, invoiceId, paymentIds } of runs)
    for (const [n, { key, amount, reference }] of planned.payments.entries()) {
      const body = { invoice_id: invoiceId, amount: Number(amount), currency: CURRENCY, reference } as const
      const again = await clerk.request('POST /payments', { body, idempotencyKey: key })
      if (again.data.id !== paymentIds[n] || again.headers.get('idempotent-replayed') !== 'true')
        findings.push(`The key ${key} paid ${paymentIds[n]} and then ${again.data.id}.`)
      const { data } = await clerk.request('GET /payments/{id}', { path: { id: again.data.id } })
      if (data.amount !== Number(amount) || data.invoice_id !== invoiceId)
        findings.push(`${data.id} is not as the client knows it: ${JSON.stringify(data)}`)
    }
  const detail = `${told.size} payments: each succeeded once in the log, and each key repeats its first answer`
  return { name: 'payments', detail, findings }
}

const checkStream = async ({ streamed }: Load, facts: readonly Fact[]): Promise<Check> => {
  const ids = new Set(facts.map(({ id }) => id))
  await eventually(() => streamed.ids.length >= ids.size, SETTLE_MAX_MS).catch(() => undefined)
  const counts = new Map<string, number>()
  for (const id of streamed.ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  const findings = [...ids].filter(id => !counts.has(id)).map(id => `The event stream lacks ${id}.`)
  for (const [id, count] of counts) if (count > 1) findings.push(`The event stream has ${id} ${count} times.`)
  const detail = `${ids.size} facts, each once over ${streamed.connections} connections of one event stream`
  return { name: 'event stream', detail, findings }
}

type Lines = readonly string[]
type Run = (name: string, commands: readonly Lines[], detailOf: (lines: Lines) => string) => Promise<Check>

/** A check made of commands, which must all exit with 0. The detail is in the output of the last one. */
const commandsOf =
  (settings: Readonly<Record<string, string>>, token: () => Promise<string>): Run =>
  async (name, commands, detailOf) => {
    let lines: Lines = []
    for (const args of commands) {
      const { code, stdout, stderr } = await run('ledger.ts', args, { ...settings, LEDGER_TOKEN: await token() })
      lines = `${stdout}\n${stderr}`.split('\n').filter(line => line.trim() !== '')
      if (code !== 0) return { name, detail: `ledger ${args.join(' ')} ended with ${code}`, findings: lines }
    }
    return { name, detail: detailOf(lines).replaceAll(/ +/g, ' '), findings: [] }
  }

const INTACT = /^(Intact|ok +evidence)/
const TOPIC = /^ok +(?:ledger\.)(\w+).v1 +(\d+ of \d+)/
const verified = (lines: Lines): string => lines.filter(line => INTACT.test(line)).join(' ')
const compared = (lines: Lines): string =>
  `${lines.filter(line => line.includes('rows of')).length} tables equal new ones from the log`
const copied = (lines: Lines): string => lines.flatMap(line => TOPIC.exec(line)?.slice(1).join(' ') ?? []).join(', ')

/** A group of consumers may not have its coordinator yet, and the manifest not be published. */
const repeated = async (check: () => Promise<Check>): Promise<Check> => {
  let last: Check | undefined
  await eventually(async () => {
    last = await check()
    return last.findings.length === 0
  }, SETTLE_MAX_MS).catch(() => undefined)
  return last ?? check()
}

export type CheckOptions = {
  readonly load: Load
  readonly settings: Readonly<Record<string, string>>
  readonly eventStoreUrl: string
  readonly hasKafka: boolean
  /** The folder of the copy that `consume --follow` has made over HTTP, and that of a new copy from Kafka. */
  readonly copies: { readonly http: string; readonly kafka: string }
  readonly api: string
}

export const runChecks = async function* (options: CheckOptions): AsyncGenerator<Check> {
  const { load, settings, eventStoreUrl, hasKafka, copies, api } = options
  const facts = await readFacts(load)
  yield await checkSums(load, facts)
  yield await checkPayments(load, eventStoreUrl)
  yield await checkStream(load, facts)
  await load.endStream()
  const check = commandsOf(settings, load.token)
  yield await check('verify', [['verify']], verified)
  yield await check('read models', [['projections', 'verify']], compared)
  const http = ['--copy', copies.http, '--api', api]
  yield await check(
    'copy over HTTP',
    [
      ['consume', ...http],
      ['consume', 'verify', ...http],
    ],
    copied,
  )
  if (!hasKafka) return
  const kafka = ['--copy', copies.kafka]
  const commands = [['manifest'], ['consume', '--from', 'kafka', ...kafka], ['consume', 'verify', ...kafka]]
  yield await repeated(() => check('copy from Kafka', commands, copied))
}
