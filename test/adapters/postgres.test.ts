import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { Client } from 'pg'
import { type DatabaseOptions, fence, openDatabase, LeaseLost } from '../../src/adapters/postgres/database.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import {
  type TestChild,
  endPrograms,
  removeFolder,
  runProgram,
  startPostgres,
  temporaryFolder,
} from '../embedded/childProcesses.ts'
import { eventually } from '../support/eventually.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { rejectionOf } from '../support/rejection.ts'

/** Longer than a test may take: a statement that sleeps for so long ends only with its connection or its server. */
const ENDLESS_S = 100
const ENDLESS_MS = 1_000 * ENDLESS_S

const expectUnavailable = (error: unknown, effect: 'none' | 'unknown'): void => {
  expect(error).to.be.instanceOf(Unavailable)
  expect(error).to.include({ dependency: 'database', effect })
}

describe('Postgres adapter', () => {
  let folder: string
  let postgres: TestChild
  let db: Database
  const opened: Database[] = []
  const stop = new AbortController()

  const open = (applicationName: string, options: Partial<DatabaseOptions> = {}): Database => {
    const database = openDatabase({
      connectionString: postgres.address,
      applicationName,
      ...options,
      lease: { pollMs: 50, ...options.lease },
    })
    opened.push(database)
    return database
  }
  /** Executes a statement on a connection that the pools under test do not have. */
  const asAdmin = async (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> => {
    const client = new Client({ connectionString: postgres.address })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text, values)).rows
    } finally {
      await client.end()
    }
  }
  const terminate = async (application: string): Promise<number> =>
    (await asAdmin('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [application]))
      .length
  const isBusy = async (application: string): Promise<boolean> => {
    const active = "select 1 from pg_stat_activity where application_name = $1 and state = 'active'"
    return (await asAdmin(active, [application])).length > 0
  }
  const postmaster = async (): Promise<number> =>
    Number.parseInt(await readFile(join(folder, 'pg/cluster/postmaster.pid'), 'utf8').catch(() => '0'), 10)

  before(async () => {
    folder = await temporaryFolder()
    await putPreparedCluster(join(folder, 'pg'))
    postgres = await startPostgres(join(folder, 'pg'))
    db = open('main')
    await db.sql('create table counted (id int primary key, n bigint not null)')
  })
  beforeEach(async () => {
    await db.sql('delete from counted')
  })
  after(async () => {
    stop.abort()
    await endPrograms()
    await Promise.all(opened.map(database => database.close()))
    await postgres.stop()
    await removeFolder(folder)
  })

  describe('values', () => {
    it('are read exactly', async () => {
      const [row] = await db.sql(
        `select 9007199254740993::bigint big, 12345678901234567890.10::numeric num, 7::int small, '{"a":[1,null]}'::jsonb doc,
                '2026-01-02 03:04:05.678901+02'::timestamptz at, '2026-01-02 03:04:05+00'::timestamptz whole, '2026-01-02'::date as day,
                array[1, null, 9007199254740993]::bigint[] bigs, array['2026-01-02 03:04:05.6+00']::timestamptz[] ats, '{}'::bigint[] empty, null::bigint nothing`,
      )
      expect(row).to.deep.equal({
        big: 9007199254740993n,
        num: '12345678901234567890.10',
        small: 7,
        doc: { a: [1, null] },
        at: '2026-01-02T01:04:05.678Z',
        whole: '2026-01-02T03:04:05.000Z',
        day: '2026-01-02',
        bigs: [1n, null, 9007199254740993n],
        ats: ['2026-01-02T03:04:05.600Z'],
        empty: [],
        nothing: null,
      })
    })

    it('are written exactly', async () => {
      const values = [9007199254740993n, '2026-01-02T01:04:05.678Z', { a: 1 }, ['x', 'y,"z"'], [1n, 2n]]
      const [row] = await db.sql(
        'select $1::bigint big, $2::timestamptz at, $3::jsonb doc, $4::text[] list, $5::bigint[] bigs',
        values,
      )
      expect(row).to.deep.equal({ big: values[0], at: values[1], doc: values[2], list: values[3], bigs: values[4] })
    })
  })

  describe('statements', () => {
    it('that are repeated with values are prepared, others are not', async () => {
      const one = openDatabase({ connectionString: postgres.address, poolMax: 1 })
      opened.push(one)
      for (let i = 0; i < 3; i++)
        expect(await one.sql('select $1::int + 1 as next', [i])).to.deep.equal([{ next: i + 1 }])
      await one.sql('select $1::int + 2 as once', [1])
      await one.sql('select 1; select 2')
      await one.sql('select 1; select 2')
      const prepared = await one.sql('select statement from pg_prepared_statements')
      expect(prepared).to.deep.equal([{ statement: 'select $1::int + 1 as next' }])
    })

    it('work after a migration has changed the result type of a prepared one', async () => {
      const one = openDatabase({ connectionString: postgres.address, poolMax: 1 })
      opened.push(one)
      await db.sql('create table changing (id int)')
      for (let i = 0; i < 3; i++) await one.sql('select * from changing where id = $1', [1])
      await db.sql("alter table changing add column more text; insert into changing values (1, 'x')")
      expectUnavailable(await rejectionOf(one.sql('select * from changing where id = $1', [1])), 'none')
      expect(await one.sql('select * from changing where id = $1', [1])).to.deep.equal([{ id: 1, more: 'x' }])
    })

    it('over their time limit are rolled back, which is no effect', async () => {
      const hasty = openDatabase({ connectionString: postgres.address, statementTimeoutMs: 200 })
      opened.push(hasty)
      const slow = 'insert into counted select 1, 1 from pg_sleep(1)'
      expectUnavailable(await rejectionOf(hasty.sql(slow)), 'none')
      expect(await db.sql('select * from counted')).to.deep.equal([])
    })

    it('of a transaction with its own time limit are cancelled at that', async () => {
      const hasty = openDatabase({ connectionString: postgres.address, statementTimeoutMs: 1_000 })
      opened.push(hasty)
      const slow = 'select 1 as done from pg_sleep(1.5)'
      expect(await hasty.transaction(sql => sql(slow), 60_000)).to.deep.equal([{ done: 1 }])
      expectUnavailable(await rejectionOf(hasty.transaction(sql => sql(slow))), 'none')
      expectUnavailable(await rejectionOf(db.transaction(sql => sql(slow), 200)), 'none')
    })

    it('keep the errors of Postgres', async () => {
      await db.sql('insert into counted values (1, 1)')
      expect(await rejectionOf(db.sql('insert into counted values (1, 1)'))).to.include({ code: '23505' })
      expect(await rejectionOf(db.sql('select nonsense'))).to.include({ code: '42703' })
    })

    it('that a server for reads alone refuses have no effect, and end their connection', async () => {
      const standby = open('standby', { poolMax: 1 })
      await standby.sql('set default_transaction_read_only = on')
      expectUnavailable(await rejectionOf(standby.sql('insert into counted values (1, 1)')), 'none')
      // After a failover a new connection is to the primary; here it has the usual settings.
      await standby.sql('insert into counted values (1, 1)')
      expect(await db.sql('select id from counted')).to.deep.equal([{ id: 1 }])
    })

    it('without a response have an unknown effect if they write, and none if they read', async () => {
      const victim = open('victim', { statementTimeoutMs: ENDLESS_MS })
      const cut = async (text: string): Promise<Error> => {
        const failing = rejectionOf(victim.sql(text))
        await eventually(() => isBusy('victim'))
        await terminate('victim')
        return await failing
      }
      expectUnavailable(await cut(`insert into counted select 1, 1 from pg_sleep(${ENDLESS_S})`), 'unknown')
      expectUnavailable(await cut(`select pg_sleep(${ENDLESS_S})`), 'none')
      expect(await victim.sql('select 1 as one')).to.deep.equal([{ one: 1 }])
    })

    it('are not sent when no connection becomes free in time', async () => {
      const narrow = openDatabase({ connectionString: postgres.address, poolMax: 1, statementTimeoutMs: 5_000 })
      opened.push(narrow)
      const busy = narrow.sql('select pg_sleep(3)')
      expectUnavailable(await rejectionOf(narrow.sql('insert into counted values (1, 1)')), 'none')
      await busy
      expect(await narrow.sql('select * from counted')).to.deep.equal([])
    })
  })

  describe('transactions', () => {
    it('are atomic', async () => {
      const result = await db.transaction(async sql => {
        await sql('insert into counted values ($1, $2)', [1, 10n])
        return await sql<{ n: bigint }>('select n from counted')
      })
      expect(result).to.deep.equal([{ n: 10n }])
      const bug = new Error('a bug in the work')
      const thrown = await rejectionOf(
        db.transaction(async sql => {
          await sql('insert into counted values (2, 2)')
          throw bug
        }),
      )
      expect(thrown).to.equal(bug)
      expect(await db.sql('select id from counted')).to.deep.equal([{ id: 1 }])
    })

    it('are rejected when the failure of a statement was ignored', async () => {
      const error = await rejectionOf(
        db.transaction(async sql => {
          await sql('insert into counted values (3, 3)')
          await sql('select nonsense').catch(() => undefined)
        }),
      )
      expect(error).to.be.instanceOf(Error).with.property('message').that.includes('rolled back')
      expect(await db.sql('select id from counted')).to.deep.equal([])
    })

    it('have no effect when their connection ends before the commit', async () => {
      const victim = open('victim-tx')
      const error = await rejectionOf(
        victim.transaction(async sql => {
          await sql('insert into counted values (4, 4)')
          await terminate('victim-tx')
          await sql('insert into counted values (5, 5)')
        }),
      )
      expectUnavailable(error, 'none')
      expect(await victim.sql('select id from counted')).to.deep.equal([])
    })

    it('have an unknown effect without a response to their commit', async () => {
      await db.sql(`create table slow (id int);
        create function wait_a_while() returns trigger language plpgsql as $$ begin perform pg_sleep(${ENDLESS_S}); return null; end $$;
        create constraint trigger at_commit after insert on slow deferrable initially deferred for each row execute function wait_a_while()`)
      const victim = open('victim-commit', { statementTimeoutMs: ENDLESS_MS })
      const failing = rejectionOf(victim.transaction(async sql => void (await sql('insert into slow values (1)'))))
      await eventually(
        async () =>
          (await asAdmin(`select 1 from pg_stat_activity where query = 'commit' and state = 'active'`)).length > 0,
      )
      await terminate('victim-commit')
      expectUnavailable(await failing, 'unknown')
    })
  })

  describe('leases', () => {
    type Held = { epoch: bigint; signal: AbortSignal; end: () => void; done: Promise<void> }
    /** Acquires the lease and keeps it until `end` or until its signal aborts. */
    const acquire = (
      database: Database,
      name: string,
      stopping = stop.signal,
    ): { began: Promise<Held>; done: Promise<void> } => {
      const began = Promise.withResolvers<Held>()
      const end = Promise.withResolvers<void>()
      const done = database.withLease(name, stopping, async ({ epoch, signal }) => {
        signal.addEventListener('abort', () => end.resolve())
        began.resolve({ epoch, signal, end: end.resolve, done })
        await end.promise
      })
      done.catch(began.reject)
      return { began: began.promise, done }
    }

    it('have one holder at a time, with an epoch that grows', async () => {
      let working = 0
      let most = 0
      const epochs: bigint[] = []
      const work = async ({ epoch }: { epoch: bigint }): Promise<void> => {
        most = Math.max(most, ++working)
        epochs.push(epoch)
        await sleep(30)
        working--
      }
      const contenders = [open('a'), open('b'), open('c')]
      for (let round = 0; round < 3; round++)
        await Promise.all(contenders.map(one => one.withLease('contended', stop.signal, work)))
      expect(most).to.equal(1)
      expect(epochs).to.deep.equal([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n])
    })

    it('report each attempt that fails because another process has the lease', async () => {
      const attempts: unknown[] = []
      const begun = Promise.withResolvers<void>()
      const first = await acquire(db, 'reported').began
      const second = open('second-reported').withLease(
        'reported',
        stop.signal,
        async () => begun.resolve(),
        error => attempts.push(error),
      )
      await eventually(() => attempts.length >= 2)
      first.end()
      await begun.promise
      await Promise.all([first.done, second])
      expect(new Set(attempts)).to.deep.equal(new Set([undefined]))
    })

    it('report that the database user lacks a permission, and are acquired after it was granted', async () => {
      const database = new URL(postgres.address).pathname.slice(1)
      await asAdmin(`create role leaseless login password 'leaseless'`)
      const url = Object.assign(new URL(postgres.address), { username: 'leaseless', password: 'leaseless' })
      const refused = openDatabase({ connectionString: url.href, poolMax: 1, lease: { pollMs: 50 } })
      opened.push(refused)
      const errors: unknown[] = []
      const begun = Promise.withResolvers<void>()
      const done = refused.withLease(
        'leaseless',
        stop.signal,
        async () => begun.resolve(),
        error => errors.push(error),
      )
      await eventually(() => errors.length > 0)
      expect(errors[0])
        .to.be.instanceOf(Error)
        .and.to.have.property('message')
        .that.matches(/permission denied/)
      await asAdmin(`grant create on database "${database}" to leaseless`)
      await asAdmin('grant all on schema ledger_meta to leaseless')
      await asAdmin('grant all on all tables in schema ledger_meta to leaseless')
      await begun.promise
      await done
    })

    it('do not block holders of other names', async () => {
      const [one, two] = await Promise.all([acquire(db, 'name-1').began, acquire(db, 'name-2').began])
      one.end()
      two.end()
      await Promise.all([one.done, two.done])
    })

    it('pass to another process when the connection of the holder ends, and the fence stops the first one from writing', async () => {
      const first = await acquire(open('first'), 'passed').began
      const waiting = acquire(open('second'), 'passed')
      await db.transaction(async sql => await fence(sql, 'passed', first.epoch))
      expect(first.signal.aborted).to.equal(false)
      expect(await terminate('first')).to.be.greaterThan(0)
      const second = await waiting.began
      expect(second.epoch).to.equal(first.epoch + 1n)
      await first.done
      expect(first.signal.aborted).to.equal(true)
      const late = db.transaction(async sql => {
        await fence(sql, 'passed', first.epoch)
        await sql('insert into counted values (9, 9)')
      })
      expect(await rejectionOf(late)).to.be.instanceOf(LeaseLost)
      await db.transaction(async sql => await fence(sql, 'passed', second.epoch))
      expect(await db.sql('select id from counted')).to.deep.equal([])
      second.end()
      await second.done
    })

    it('pass to another process only after a transaction that has passed the fence', async () => {
      const first = await acquire(open('first-slow'), 'fenced').began
      const order: string[] = []
      const passed = Promise.withResolvers<void>()
      const writing = db.transaction(async sql => {
        await fence(sql, 'fenced', first.epoch)
        passed.resolve()
        await sleep(600)
        order.push('written')
      })
      await passed.promise
      const waiting = acquire(open('second-slow'), 'fenced')
      await terminate('first-slow')
      const second = await waiting.began
      order.push('acquired')
      await writing
      expect(order).to.deep.equal(['written', 'acquired'])
      second.end()
      await second.done
    })

    it('are no longer waited for, and no longer held, after an abort', async () => {
      const holder = await acquire(db, 'stopped').began
      const stopping = new AbortController()
      const waiting = acquire(db, 'stopped', stopping.signal)
      stopping.abort()
      await waiting.done
      holder.end()
      await holder.done
      const again = new AbortController()
      const second = await acquire(db, 'stopped', again.signal).began
      again.abort()
      await second.done
      expect(second.signal.aborted).to.equal(true)
    })

    it('are kept by heartbeats while the holder is idle for longer than the timeout', async () => {
      const lease = { heartbeatMs: 200, idleMs: 2_000 }
      const holder = await acquire(open('beating', { lease }), 'beating').began
      await sleep(1.5 * lease.idleMs)
      expect(holder.signal.aborted).to.equal(false)
      holder.end()
      await holder.done
    })

    it('are taken over from a stopped process, which is fenced when it continues', async () => {
      const module = pathToFileURL(join(import.meta.dirname, '../../src/adapters/postgres/database.ts')).href
      const sleeper = runProgram([
        '--input-type=module',
        '-e',
        `import { openDatabase, fence } from ${JSON.stringify(module)}
         const db = openDatabase({ connectionString: ${JSON.stringify(postgres.address)}, lease: { heartbeatMs: 500, idleMs: 2000 } })
         await db.withLease('sleeper', new AbortController().signal, async ({ epoch, signal }) => {
           console.log(String(epoch)); console.log('ready')
           while (!signal.aborted) {
             await db.transaction(async sql => {
               await fence(sql, 'sleeper', epoch)
               await sql('insert into counted values (1, 1) on conflict (id) do update set n = counted.n + 1')
             })
           }
         }).catch(error => { console.error(error.name) })
         await db.close()`,
      ])
      const epoch = BigInt((await sleeper.ready)[0] ?? 0)
      sleeper.process.kill('SIGSTOP')
      const stoppedAtMs = performance.now()
      const second = await acquire(db, 'sleeper').began
      expect(performance.now() - stoppedAtMs).to.be.at.least(1_000)
      expect(second.epoch).to.equal(epoch + 1n)
      const counted = async () => await db.sql('select n from counted')
      const before = await counted()
      sleeper.process.kill('SIGCONT')
      const { stderr } = await sleeper.exited
      expect(stderr.trim()).to.be.oneOf(['LeaseLost', 'Unavailable', ''])
      expect(await counted()).to.deep.equal(before)
      second.end()
      await second.done
    })
  })

  describe('a database', () => {
    it('that is killed is unavailable, and then available again to the same pool and the same holder of a lease', async () => {
      const stopping = new AbortController()
      const writer = open('writer', { statementTimeoutMs: ENDLESS_MS })
      let acquired = 0
      const lost = Promise.withResolvers<void>()
      const holding = (async () => {
        while (!stopping.signal.aborted) {
          await db.withLease('survivor', stopping.signal, async ({ signal }) => {
            acquired++
            await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
            lost.resolve()
          })
        }
      })()
      await eventually(() => acquired === 1)
      const writing = rejectionOf(writer.sql(`insert into counted select 1, 1 from pg_sleep(${ENDLESS_S})`))
      await eventually(() => isBusy('writer'))
      const supervisor = postgres.pid
      // A stopped supervisor does not start the server again before the test has seen it unavailable.
      process.kill(supervisor, 'SIGSTOP')
      try {
        process.kill(await postmaster(), 'SIGKILL')
        expectUnavailable(await writing, 'unknown')
        await lost.promise
        // The backend of an idle connection may outlive the server by a moment, and take a statement.
        await eventually(async () => {
          const failure = await rejectionOf(db.sql('insert into counted values (2, 2) on conflict do nothing'))
          if (failure !== undefined) expect(failure).to.be.instanceOf(Unavailable)
          return (failure as Unavailable | undefined)?.effect === 'none'
        })
        expectUnavailable(await rejectionOf(db.transaction(async () => undefined)), 'none')
      } finally {
        process.kill(supervisor, 'SIGCONT')
      }
      await eventually(() => acquired === 2)
      expect(await db.sql('select id from counted where id = 1')).to.deep.equal([])
      stopping.abort()
      await holding
    })

    it('that hangs is unavailable, and then available again', async () => {
      await db.sql('select 1')
      const server = await postmaster()
      const backends = await asAdmin(`select pid from pg_stat_activity where application_name = 'main'`)
      const pids = [server, ...backends.map(row => Number(row['pid']))]
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      try {
        // A statement without a deadline would never end, because the server continues only afterwards.
        expectUnavailable(await rejectionOf(db.sql('insert into counted values (1, 1)')), 'unknown')
      } finally {
        for (const pid of pids) process.kill(pid, 'SIGCONT')
      }
      const responds = () =>
        db.sql('select 1').then(
          () => true,
          () => false,
        )
      await eventually(responds)
    })
  })
})
