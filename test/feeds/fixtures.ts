import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { invoiceEntity, orderEntity, paymentEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { pay } from '../../src/commands/payments.ts'
import type { Feed, FeedState, Run } from '../../src/feeds/feedLoop.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { type Database, type FactMessage, type FactProducer, FactTooLarge, type StoredEvent } from '../../src/ports.ts'
import { createOrder, id, invoiceOrder } from '../streams/samples.ts'
import { approveInvoice, context, newPayment } from '../commands/fixtures.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { newDatabase } from '../support/postgres.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'

/** Fixtures of the tests of feeds: Postgres with a database per test, a log with payments, a bus, and runs by hand. */
export type TestPostgres = {
  readonly database: () => Promise<Database>
  /** A database with all tables. */
  readonly ledgerDatabase: () => Promise<Database>
}

/** Small, because the server has a hundred connections for the pools of all tests. */
const POOL_MAX = 3

/**
 * Makes Postgres cancel every statement that changes more than `rowsMax` rows of the table, as one that takes too long is
 * canceled, but on machines of any speed.
 */
export const limitChangedRows = async ({ sql }: Database, table: string, rowsMax: number): Promise<void> => {
  await sql(`create function check_changed_rows() returns trigger language plpgsql as $$ begin
    if (select count(*) from changed) > ${rowsMax} then
      raise exception 'canceling statement due to statement timeout' using errcode = 'query_canceled';
    end if;
    return null;
  end $$`)
  const changes = { update: 'new table', delete: 'old table' }
  for (const [change, rows] of Object.entries(changes))
    await sql(`create trigger check_${change} after ${change} on ${table} referencing ${rows} as changed
      for each statement execute function check_changed_rows()`)
}

let template: Promise<string> | undefined

/** The name of a database with all tables: to copy it takes a quarter of the processor time that their creation takes. */
const ledgerTemplate = async (): Promise<string> => {
  const connectionString = await newDatabase()
  const database = openDatabase({ connectionString, poolMax: 1 })
  await createLedgerTables(database)
  await database.close()
  return new URL(connectionString).pathname.slice(1)
}

/** Databases for the tests of a describe block, whose pools are closed after it. */
export const useTestPostgres = (): TestPostgres => {
  const opened: Database[] = []
  after(async () => {
    await Promise.all(opened.map(one => one.close()))
  })
  const open = (connectionString: string): Database => {
    const database = openDatabase({ connectionString, poolMax: POOL_MAX, lease: { pollMs: 20 } })
    opened.push(database)
    return database
  }
  return {
    database: async () => open(await newDatabase()),
    ledgerDatabase: async () => open(await newDatabase(await (template ??= ledgerTemplate()))),
  }
}

/** A ledger on a log in memory. */
export const createTestLedger = (log: MemoryLog): Ledger => createLedger(log.open(), createVirtualWorld())

/** A log with orders, invoices and payments in all states, `count` of each. */
export const fillLog = async (count: number): Promise<MemoryLog> => {
  const log = createMemoryLog()
  const ledger = createTestLedger(log)
  for (let n = 1; n <= count; n += 1) {
    const orderId = id('ord', n)
    await handle(ledger, orderEntity, orderId, { command: createOrder, context: context(), load: 'assume_empty' })
    await handle(ledger, orderEntity, orderId, { command: invoiceOrder(n), context: context() })
    await approveInvoice(ledger, n)
    const settlement = n % 3 === 0 ? 'deferred' : 'immediate'
    for (const amount of n % 2 === 0 ? [1000n, 1500n] : [900n])
      await pay(
        ledger,
        {
          ...newPayment(`${n}/${amount}`, {
            invoice_id: id('inv', n),
            amount,
            settlement,
            reference: `${n}/${amount}`,
          }),
        },
        context(),
      )
  }
  return log
}

/** The rows that the tables must have, by the fold that serves a GET by id, in the order of `rowsIn`. */
export const foldedRows = async (log: MemoryLog) => {
  const { aggregates } = createTestLedger(log)
  const idsOf = (category: string): string[] => [
    ...new Set(log.events.map(({ stream }) => stream).filter(stream => stream.startsWith(`${category}-`))),
  ]
  const suffix = (stream: string) => stream.slice(stream.indexOf('-') + 1)
  const rowsOf = async <R>(category: string, load: (of: string) => Promise<{ row: R | undefined }>) =>
    (await Promise.all(idsOf(category).map(suffix).toSorted().map(load))).map(({ row }) => row)
  return {
    orders_v1: await rowsOf('order', of => aggregates.load(orderEntity, of as `ord_${string}`)),
    // A set is a list in the table.
    invoices_v1: (await rowsOf('invoice', of => aggregates.load(invoiceEntity, of as `inv_${string}`))).map(
      row => row && { ...row, reserved: [...row.reserved] },
    ),
    payments_v1: await rowsOf('payment', of => aggregates.load(paymentEntity, of as `pay_${string}`)),
  }
}

export type Table = 'orders_v1' | 'invoices_v1' | 'payments_v1'
export const TABLES: readonly Table[] = ['orders_v1', 'invoices_v1', 'payments_v1']

export const rowsIn = (database: Database, table: string, order = 'id'): Promise<Record<string, unknown>[]> =>
  database.sql(`select * from ${table} order by ${order} collate "C"`)

/** A bus that records acknowledged messages, and refuses those of some keys as too large. */
export const createRefusingBus = (...keys: readonly string[]) => {
  const acknowledged: FactMessage[] = []
  const tooLarge = new Set(keys)
  let attempts = 0
  const bus: FactProducer = {
    ensureTopics: () => Promise.resolve(),
    publish: async messages => {
      const refused = messages.find(({ key }) => tooLarge.has(key))
      if (refused) attempts += 1
      if (refused) throw new FactTooLarge(refused)
      acknowledged.push(...messages)
    },
    close: () => Promise.resolve(),
  }
  /** `attempts`: the number of calls that were refused. */
  return { bus, acknowledged, tooLarge, attempts: () => attempts }
}
export type RefusingBus = ReturnType<typeof createRefusingBus>

/** A run that the test drives; its signal never aborts. */
export const beginRun = (feed: Feed, epoch = 1n): Promise<Run> => feed.beginRun(epoch, new AbortController().signal)

/** Passes the log after the checkpoint to the feed, in batches of `size`. */
export const feedAll = async (feed: Feed, log: MemoryLog, size = 1_000, epoch = 1n): Promise<void> => {
  const { after, processBatch } = await beginRun(feed, epoch)
  const target = log.events.filter(({ position }) => after === 'start' || position > after)
  for (let from = 0; from < target.length; from += size) {
    const batch: readonly StoredEvent[] = target.slice(from, from + size)
    await processBatch(batch, batch.at(-1)?.position ?? 0n)
  }
}

/** The states that a feed has reported, newest last. */
export type Reports = { readonly states: FeedState[]; readonly report: (state: FeedState) => void }
export const createReports = (): Reports => {
  const states: FeedState[] = []
  return { states, report: state => void states.push(state) }
}
