import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Client, Pool } from 'pg'
import { inFlight, type Sample, type Side } from './measure.ts'

/** The reference for durable writes: single-row inserts, each in its own transaction, by 64 clients. */

const CLIENTS = 64
const THREADS = 2
const ROW_BYTES = 600
const DEBIAN = '/usr/lib/postgresql'

const run = promisify(execFile)

const TABLE = 'create table if not exists bench_rows (id bigserial primary key, body text not null)'

/** Debian's pgbench of any version; undefined if it is not installed. */
const findPgbench = async (): Promise<string | undefined> => {
  const versions = await readdir(DEBIAN).catch(() => [])
  const places = ['pgbench', ...versions.map(version => `${DEBIAN}/${version}/bin/pgbench`)]
  for (const place of places)
    if (
      await run(place, ['--version']).then(
        () => true,
        () => false,
      )
    )
      return place
  return undefined
}

export type SingleInserts = { readonly side: Side; readonly by: string }

/** `body` has the size of an event with its metadata. `file` is the path for the script of pgbench. */
export const singleInserts = async (databaseUrl: string, file: string): Promise<SingleInserts> => {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(TABLE)
  await client.end()
  const insert = `insert into bench_rows (body) values ('${'x'.repeat(ROW_BYTES)}')`
  const program = await findPgbench()
  if (program === undefined)
    return {
      by: `${CLIENTS} clients of node-postgres, since pgbench is not installed`,
      side: byNode(databaseUrl, insert),
    }
  await writeFile(file, `${insert};\n`)
  return { by: `pgbench with ${CLIENTS} clients`, side: seconds => byPgbench(program, databaseUrl, file, seconds) }
}

const byPgbench = async (program: string, databaseUrl: string, file: string, seconds: number): Promise<Sample> => {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const whole = Math.max(1, Math.round(seconds))
  const where = ['-h', hostname, '-p', port, '-U', username]
  const how = ['-n', '-M', 'prepared', '-c', `${CLIENTS}`, '-j', `${THREADS}`, '-T', `${whole}`, '-f', file]
  const { stdout } = await run(program, [...where, ...how, pathname.slice(1)], {
    env: { ...process.env, PGPASSWORD: decodeURIComponent(password) },
  })
  const tps = Number(/tps = ([\d.]+)/.exec(stdout)?.[1])
  if (!Number.isFinite(tps)) throw new Error(`pgbench said no rate: ${stdout}`)
  return { count: tps * whole, seconds: whole, latenciesMs: [] }
}

const byNode =
  (databaseUrl: string, text: string): Side =>
  async seconds => {
    const pool = new Pool({ connectionString: databaseUrl, max: CLIENTS })
    try {
      return await inFlight(CLIENTS, seconds, async () => void (await pool.query({ name: 'insert', text })))
    } finally {
      await pool.end()
    }
  }
