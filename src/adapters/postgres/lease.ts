/**
 * Leases: one holder at a time for a name. The lock is a session-level advisory lock on a dedicated connection, so
 * Postgres releases it with the session. Two failures remain, each with its protection:
 *
 * A stopped holder (SIGSTOP, a paused machine) keeps its TCP connection. Its heartbeat stops too, and Postgres ends a
 * session that was idle for `idleMs`; then another process takes the lock.
 *
 * A stopped holder continues and writes before it notices. Every acquisition increments the epoch in
 * `ledger_meta.leases`, and each transaction of a holder tests its epoch: that of a feed by its checkpoint
 * (src/feeds/checkpoints.ts), any other by `fence`. `fence` locks the lease row for share, so an acquisition waits for
 * transactions that have passed the fence, and later ones find the newer epoch and throw.
 */

import { hostname } from 'node:os'
import { setTimeout as unrefSleep } from 'node:timers/promises'
import { backoffMs, sleep } from '../../lib/time.ts'
import { Client, type ClientConfig } from 'pg'
import type { Database, Sql } from '../../ports.ts'
import { leaseLock } from '../../schema/locks.ts'
import { tableStatements } from '../../schema/tables.ts'

export type LeaseOptions = {
  /** The interval at which a waiting process tries the lock. */
  readonly pollMs: number
  readonly heartbeatMs: number
  /** After this time without a heartbeat Postgres ends the session; more than twice `heartbeatMs`. */
  readonly idleMs: number
}

export const leaseDefaults: LeaseOptions = { pollMs: 250, heartbeatMs: 2_000, idleMs: 8_000 }

type Work = Parameters<Database['withLease']>[2]
type LeaseRequest = { readonly name: string; readonly stop: AbortSignal; readonly waiting: (error: unknown) => void }

const RETRY_MAX_MS = 2_000
const END_MAX_MS = 1_000

const TAKE = `
  insert into ledger_meta.leases as lease (name, epoch, holder, taken_at) values ($1, 1, $2, clock_timestamp())
  on conflict (name) do update set epoch = lease.epoch + 1, holder = excluded.holder, taken_at = excluded.taken_at
  returning epoch`

/** A newer holder has the lease: nothing may be written any more with this epoch. */
export class LeaseLost extends Error {
  constructor(name: string, epoch: bigint, current: bigint | undefined) {
    super(`The holder of ${name} with epoch ${epoch} was replaced; the epoch is now ${current ?? 'gone'}.`)
    this.name = 'LeaseLost'
  }
}

/** First in every transaction of a holder: throws LeaseLost unless `epoch` is the newest, and keeps it so until the end. */
export const fence = async (sql: Sql, name: string, epoch: bigint): Promise<void> => {
  const [lease] = await sql<{ epoch: bigint }>('select epoch from ledger_meta.leases where name = $1 for share', [name])
  if (lease?.epoch !== epoch) throw new LeaseLost(name, epoch, lease?.epoch)
}

/** Bounded, since a hung server does not close its side; its session then ends at the idle timeout. */
const end = async (client: Client): Promise<void> => {
  const ended = client.end().catch(() => undefined)
  await Promise.race([ended, unrefSleep(END_MAX_MS, undefined, { ref: false })])
}

const connect = async (config: ClientConfig, { idleMs }: LeaseOptions): Promise<Client> => {
  const client = new Client(config)
  // Without a listener the end of a connection would end this process. The users of the connection learn of it by their
  // next query.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(`set idle_session_timeout = ${idleMs}; set idle_in_transaction_session_timeout = ${idleMs}`)
    return client
  } catch (error) {
    await end(client)
    throw error
  }
}

/** Waits on one connection. Undefined if `stop` aborted first. */
const waitForLock = async (client: Client, { name, stop, waiting }: LeaseRequest, { pollMs }: LeaseOptions) => {
  while (!stop.aborted) {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      leaseLock(name),
    ])
    if (rows[0]?.taken === true) return true
    waiting(undefined)
    await sleep(pollMs, stop)
  }
  return undefined
}

const takeEpoch = async (client: Client, name: string): Promise<bigint> => {
  const { rows } = await client.query<{ epoch: string }>(TAKE, [name, `${hostname()}:${process.pid}`])
  // Parsed here instead of by the client's types, so this file works with any configuration.
  return BigInt(rows[0]?.epoch ?? 0)
}

const tryAcquire = async (config: ClientConfig, request: LeaseRequest, options: LeaseOptions) => {
  const client = await connect(config, options)
  try {
    await client.query(await tableStatements('leases'))
    if (await waitForLock(client, request, options)) return { client, epoch: await takeEpoch(client, request.name) }
  } catch (error) {
    await end(client)
    throw error
  }
  await end(client)
  return undefined
}

/** Retries through any outage of the database, because a waiting process has no other work. */
const acquire = async (config: ClientConfig, request: LeaseRequest, options: LeaseOptions) => {
  const { stop, waiting } = request
  for (let failures = 0; !stop.aborted; failures += 1) {
    try {
      return await tryAcquire(config, request, options)
    } catch (error) {
      waiting(error)
      await sleep(backoffMs(failures, options.pollMs, RETRY_MAX_MS), stop)
    }
  }
  return undefined
}

/** Keeps the session alive; aborts `lost` at the first sign that it has ended. */
const keepAlive = (client: Client, heartbeatMs: number, lost: AbortController): (() => void) => {
  const lose = (): void => lost.abort(new Error('The session that held the lock ended.'))
  client.on('end', lose).on('error', lose)
  let beating = false
  const timer = setInterval(() => {
    if (beating) return lose()
    beating = true
    client.query('select 1').then(() => (beating = false), lose)
  }, heartbeatMs)
  return () => clearInterval(timer)
}

/** Runs `work` as the only holder of `name` (`Database.withLease`), or not at all if stopped first. */
export const holdExclusively = async (
  config: ClientConfig,
  options: LeaseOptions,
  { work, ...request }: LeaseRequest & { readonly work: Work },
): Promise<void> => {
  const { stop } = request
  const held = await acquire(config, request, options)
  if (held === undefined) return
  const lost = new AbortController()
  const endHeartbeat = keepAlive(held.client, options.heartbeatMs, lost)
  try {
    await work({ epoch: held.epoch, signal: AbortSignal.any([stop, lost.signal]) })
  } finally {
    // The lock is released only after the work has ended, not when it was asked to end.
    endHeartbeat()
    await end(held.client)
  }
}
