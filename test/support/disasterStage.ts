import { spawn } from 'node:child_process'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Head } from '../../src/evidence/heads.ts'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { root } from '../architecture/repository.ts'
import { NODE } from '../embedded/eventStoreNode.ts'
import { query, startChild, type TestChild } from '../embedded/childProcesses.ts'
import { NPM } from '../scripts/cli.ts'
import {
  aPayment,
  type Answer,
  approvedInvoice,
  type Client,
  clientOf,
  inParallel,
  isReplay,
  newKey,
  pay,
} from './client.ts'
import { eventually } from './eventually.ts'
import { removeFolder } from './folders.ts'
import { newDatabase } from './postgres.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from './service.ts'

/**
 * The stage of the drills of DISASTER.md: a service on an event store and a Postgres of their own, with payments from before a
 * backup and after it. Each drill gets copies of the stores as they were at one of the two moments.
 */

export const TENANT = 'acme'
const AMOUNT = 900
/** More for the figures of the page. */
const PAYMENTS = Number(process.env['DRILL_PAYMENTS'] ?? 6)
const WIDTH = 16

/** The addresses of two databases: that of the event store, and that of the service. */
type Stores = { readonly log: string; readonly tables: string }
export type Moment = 'backup' | 'now'
export type Intent = {
  readonly key: string
  readonly request: Record<string, unknown>
  readonly answer: Answer
  /** Whether the backup has the invoice. */
  readonly hasInvoice: boolean
}

const copyOf = (url: string): Promise<string> => newDatabase(new URL(url).pathname.slice(1))

/** The blocks of the page by their names. */
const readBlocks = async (): Promise<ReadonlyMap<string, string>> => {
  const page = await readFile(join(root, 'scripts/ledger/DISASTER.md'), 'utf8')
  return new Map([...page.matchAll(/^```sh (\w+)\n([^]*?)^```$/gm)].map(([, name = '', code = '']) => [name, code]))
}

/** Kafka's own tool is not among the jars of the broker that the tests start. */
const KAFKA_TOPICS = `kafka-topics.sh() {
  [ "$1 $3 $4" = '--bootstrap-server --delete --topic' ] && node --input-type=module -e '
    import { Kafka, logLevel } from "kafkajs"
    const admin = new Kafka({ brokers: process.argv[1].split(","), logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const topics = (await admin.listTopics()).filter(name => new RegExp("^(" + process.argv[2] + ")$").test(name))
    await admin.deleteTopics({ topics })
    await admin.disconnect()
    console.log("deleted: " + topics.length)' "$2" "$5"
}
`

export type Ran = { readonly code: number | null; readonly output: string }

const runShell = (code: string, env: Readonly<Record<string, string>>): Promise<Ran> => {
  const script = `${NPM}${KAFKA_TOPICS}cd "$ROOT"\n${code}`
  const child = spawn('bash', ['-uo', 'pipefail', '-c', script], { env: { ...process.env, ROOT: root, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  return new Promise(resolve => child.once('close', ended => resolve({ code: ended, output })))
}

/** Seconds from now on. */
export const stopwatch = () => {
  const beganMs = performance.now()
  return (): string => `${((performance.now() - beganMs) / 1_000).toFixed(1)} s`
}

export const report = (drill: string, figures: string): void =>
  void process.stdout.write(`      ${drill}: ${figures}\n`)

export type Stage = Awaited<ReturnType<typeof openStage>>

type Running = ReturnType<typeof createRunning>

/** One running service, with its stores. Long because its functions share them. */
const createRunning = (settings: Readonly<Record<string, string>>, port: number) => {
  let node: TestChild | undefined
  let service: ServiceProcess | undefined
  let env: Record<string, string> = {}
  let dataDir = ''
  const stopService = async (): Promise<void> => {
    await service?.end('SIGTERM')
    service = undefined
  }
  return {
    /** Starts the event store; the service is started by `start`. */
    place: async ({ log, tables }: Stores, folder: string): Promise<void> => {
      node = await startChild({
        name: 'eventstore',
        module: NODE,
        port,
        args: of => ['--database-url', log, '--port', of],
      })
      dataDir = folder
      env = { ...settings, EVENTSTORE_URL: node.address, DATABASE_URL: tables }
    },
    start: async (more: Readonly<Record<string, string>> = {}): Promise<Client> => {
      service = await startProcess(dataDir, { ...env, ...more })
      return clientOf(service.api, await service.token({ tenant: TENANT }))
    },
    stopService,
    stop: async (): Promise<void> => {
      await stopService()
      await node?.stop()
      node = undefined
    },
    /** The reason for which the service does not start; empty if it does. */
    refusal: (): Promise<string> =>
      startProcess(dataDir, env).then(
        started => started.end('SIGKILL').then(() => ''),
        (error: unknown) => String(error),
      ),
    service: (): ServiceProcess => service ?? expect.fail('No service runs.'),
    store: (): string => node?.address ?? '',
    tables: () => env['DATABASE_URL'] ?? '',
    dataDir: () => dataDir,
    /** The settings of the service, for the commands of the page. */
    env: (): Record<string, string> => ({ ...env, LEDGER_DATA_DIR: dataDir, NODE_ENV: 'test' }),
  }
}

export const headsIn = async (dataDir: string): Promise<Head[]> => {
  const text = await readFile(join(dataDir, 'evidence', 'heads.jsonl'), 'utf8').catch(() => '')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as Head]))
}

/** Every page of a list. */
export const allOf = async (client: Client, path: string): Promise<Record<string, unknown>[]> => {
  const items: Record<string, unknown>[] = []
  for (let cursor = ''; ; ) {
    const { status, text, body } = await client.get(`${path}?limit=100${cursor}`)
    expect(status, text).to.equal(200)
    items.push(...body.items)
    if (body.page.has_more !== true) return items
    cursor = `&cursor=${body.page.next_cursor}`
  }
}

/** The ids of the payments that succeeded, one for each fact of it in the feed. */
export const paidIn = async (client: Client): Promise<unknown[]> =>
  (await allOf(client, '/events')).filter(({ type }) => type === 'payment.succeeded').map(({ subject }) => subject)

/** Sends the intent again, with its key. */
export const retry = (client: Client, { request, key }: Intent): Promise<Answer> => pay(client, request, key)

/** Each intent, sent again, gets its payment and is not made again. */
export const expectReplays = async (client: Client, intents: readonly Intent[]): Promise<void> => {
  for (const intent of intents) {
    const again = await retry(client, intent)
    expect([again.status, isReplay(again), again.body.id]).to.deep.equal([201, true, intent.answer.body.id])
  }
}

/** Each of these was paid once, in the feed and in the list, and nothing else was. */
export const expectPaidOnce = async (client: Client, intents: readonly Intent[]): Promise<void> => {
  const ids = intents.map(({ answer }) => String(answer.body.id)).toSorted()
  await eventually(async () => (await paidIn(client)).length >= ids.length)
  expect((await paidIn(client)).map(String).toSorted()).to.deep.equal(ids)
  expect((await allOf(client, '/payments')).map(({ id }) => String(id)).toSorted()).to.deep.equal(ids)
}

const KEPT_TRIED = 3

/**
 * Sends what was lost again: it is paid under the same id, or the answer names the invoice that is lost too. Resolves to the
 * intents that are paid now.
 */
export const sendAgain = async (client: Client, { kept, lost }: Pick<Stage, 'kept' | 'lost'>): Promise<Intent[]> => {
  await expectReplays(client, kept.slice(0, KEPT_TRIED))
  for (const intent of lost) {
    expect((await client.get(`/payments/${intent.answer.body.id}`)).status).to.equal(404)
    const made = await retry(client, intent)
    if (!intent.hasInvoice) expect([made.status, made.body.code]).to.deep.equal([404, 'resource_not_found'])
    else expect([made.status, isReplay(made), made.body.id]).to.deep.equal([201, false, intent.answer.body.id])
  }
  const again = lost.filter(({ hasInvoice }) => hasInvoice)
  await expectReplays(client, again)
  return [...kept, ...again]
}

const endOfFeed = async (client: Client): Promise<string> => {
  for (let query = ''; ; ) {
    const { body } = await client.get(`/events?limit=100${query}`)
    if (body.page.has_more !== true) return body.page.next_cursor
    query = `&cursor=${body.page.next_cursor}`
  }
}

const intend = async (client: Client, invoiceId: string, name: string, hasInvoice: boolean): Promise<Intent> => {
  const request = aPayment(invoiceId, { amount: AMOUNT, reference: name })
  const key = newKey()
  const answer = await pay(client, request, key)
  expect(answer.status, answer.text).to.equal(201)
  return { key, request, answer, hasInvoice }
}
const invoice = async (client: Client, name: string): Promise<string> =>
  (await approvedInvoice(client, AMOUNT, { customer_reference: `Jane ${name}` })).invoiceId

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** Pays DRILL_PAYMENTS intents, and leaves half as many invoices open. */
const payBefore = async (client: Client) => {
  const kept = await inParallel(WIDTH, numbers(PAYMENTS), async n =>
    intend(client, await invoice(client, `${n}`), `kept ${n}`, true),
  )
  return { kept, open: await inParallel(WIDTH, numbers(Math.ceil(PAYMENTS / 2)), n => invoice(client, `open ${n}`)) }
}

/** Pays the open invoices, and new ones: as many intents again. */
const payAfter = (client: Client, open: readonly string[]): Promise<Intent[]> =>
  inParallel(WIDTH, numbers(PAYMENTS), async n =>
    intend(client, open[n] ?? (await invoice(client, `later ${n}`)), `lost ${n}`, open[n] !== undefined),
  )

/** Work beside the running service at the end of a time. */
type Work = (client: Client, env: Readonly<Record<string, string>>) => Promise<void>
type StageOptions = {
  readonly settings?: Readonly<Record<string, string>>
  readonly before?: Work
  readonly after?: Work
}

type Written = Readonly<Record<Moment, Stores>> & {
  readonly kept: readonly Intent[]
  readonly lost: readonly Intent[]
  /** Of GET /events, at the end. */
  readonly cursor: string
}

/** Writes the events of both times, and copies the stores after each. */
const write = async (running: Running, dataDir: string, { before, after }: StageOptions): Promise<Written> => {
  const stores: Stores = { log: await newDatabase(), tables: await newDatabase() }
  const start = async (): Promise<Client> => {
    await running.place(stores, dataDir)
    return running.start()
  }
  /** Until the feed has all payments and the heads cover all events: then stops both, and copies them. */
  const settle = async (client: Client, payments: number, work?: Work): Promise<Stores> => {
    await eventually(async () => (await paidIn(client)).length === payments)
    await work?.(client, running.env())
    await eventually(async () => {
      const [events] = await query(stores.log, 'select max(position) as position from events')
      return BigInt((await headsIn(dataDir)).at(-1)?.position ?? -1) >= BigInt(String(events?.['position']))
    })
    await running.stop()
    return { log: await copyOf(stores.log), tables: await copyOf(stores.tables) }
  }
  const early = await start()
  const { kept, open } = await payBefore(early)
  const backup = await settle(early, kept.length, before)
  const late = await start()
  const lost = await payAfter(late, open)
  let cursor = ''
  const now = await settle(late, kept.length + lost.length, async (client, env) => {
    await after?.(client, env)
    cursor = await endOfFeed(client)
  })
  return { backup, now, kept, lost, cursor }
}

export const openStage = async (options: StageOptions = {}) => {
  const folder = await temporaryDirectory()
  const base = join(folder, 'data')
  const running = createRunning(options.settings ?? {}, await findFreePort('127.0.0.1'))
  const { kept, lost, cursor, ...moments } = await write(running, base, options)
  const blocks = await readBlocks()
  const follow = (name: string, env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    runShell(blocks.get(name) ?? expect.fail(`DISASTER.md has no block ${name}.`), { ...running.env(), ...env })
  return {
    ...running,
    folder,
    /** The intents that were paid before the backup, and those after it. */
    kept,
    lost,
    cursor,
    moments,
    /** Places copies of the stores of these moments, with the data directory as it is now. */
    restore: async (name: string, { log, tables }: Readonly<Record<'log' | 'tables', Moment | 'empty'>>) => {
      const from = async (store: 'log' | 'tables', moment: Moment | 'empty') =>
        moment === 'empty' ? newDatabase() : copyOf(moments[moment][store])
      const dataDir = join(folder, name)
      await cp(base, dataDir, { recursive: true })
      await running.place({ log: await from('log', log), tables: await from('tables', tables) }, dataDir)
    },
    /** Runs a block of the page. */
    follow,
    /** Runs it, and expects that it succeeds. Resolves to its output. */
    succeed: async (name: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
      const { code, output } = await follow(name, env)
      expect(code, output).to.equal(0)
      return output
    },
    /** Runs `check` until it finds nothing, as the page says: the feeds may have to catch up. */
    check: async (): Promise<void> => {
      let last = ''
      const isSound = async (): Promise<boolean> => {
        const { code, output } = await follow('check')
        last = output
        return code === 0 && /^Intact\.$/m.test(output)
      }
      await eventually(isSound).catch(() => expect.fail(last))
    },
    close: async (): Promise<void> => {
      await running.stop()
      await removeFolder(folder)
    },
  }
}
