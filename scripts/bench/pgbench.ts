import { execFile } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { Pool } from 'pg'
import { WrongAnswers } from './answers.ts'
import { withClient } from './apiClient.ts'
import { inFlight, type Sample, type Side } from './measure.ts'

const CLIENTS = 64
const THREADS = 2
const ROW_BYTES = 600
/** A shorter run may end before its clients are connected. */
const SECONDS_MIN = 2
const DEBIAN = '/usr/lib/postgresql'

const run = promisify(execFile)

const TABLE = 'create table if not exists bench_rows (id bigserial primary key, body text not null)'

/** Debian's pgbench of any version; undefined if it is not installed. */
const findPgbench = async (): Promise<string | undefined> => {
  const versions = await readdir(DEBIAN).catch(() => [])
  const places = ['pgbench', ...versions.map(version => `${DEBIAN}/${version}/bin/pgbench`)]
  for (const place of places) if ((await run(place, ['--version']).catch(() => undefined)) !== undefined) return place
  return undefined
}

/** `body` has the size of an event with its metadata. `file` is the path for the script of pgbench. */
export const singleInserts = async (databaseUrl: string, file: string): Promise<{ side: Side; by: string }> => {
  await query(databaseUrl, TABLE)
  const insert = `insert into bench_rows (body) values ('${'x'.repeat(ROW_BYTES)}')`
  const program = await findPgbench()
  if (program === undefined)
    return {
      by: `${CLIENTS} clients of node-postgres, since pgbench is not installed`,
      side: counted(databaseUrl, byNode(databaseUrl, insert)),
    }
  await writeFile(file, `${insert};\n`)
  const side: Side = seconds => byPgbench(program, databaseUrl, file, seconds)
  return { by: `pgbench with ${CLIENTS} clients`, side: counted(databaseUrl, side) }
}

const query = (databaseUrl: string, text: string): Promise<{ readonly count?: number } | undefined> =>
  withClient(databaseUrl, async client => (await client.query<{ count?: number }>(text)).rows[0])

/** The same side, which throws unless the table has exactly the reported rows more. */
const counted =
  (databaseUrl: string, side: Side): Side =>
  async seconds => {
    const rows = async (): Promise<number> =>
      (await query(databaseUrl, 'select count(*)::int as count from bench_rows'))?.count ?? 0
    const before = await rows()
    const sample = await side(seconds)
    const added = (await rows()) - before
    if (added === sample.count) return sample
    throw new WrongAnswers([`${sample.count} inserts were reported, and there are ${added} rows more.`])
  }

const byPgbench = async (program: string, databaseUrl: string, file: string, seconds: number): Promise<Sample> => {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const whole = Math.max(SECONDS_MIN, Math.round(seconds))
  const where = ['-h', hostname, '-p', port, '-U', username]
  const how = ['-n', '-M', 'prepared', '-c', `${CLIENTS}`, '-j', `${THREADS}`, '-T', `${whole}`, '-f', file]
  const { stdout } = await run(program, [...where, ...how, pathname.slice(1)], {
    env: { ...process.env, PGPASSWORD: decodeURIComponent(password) },
  })
  const tps = Number(/tps = ([\d.]+)/.exec(stdout)?.[1])
  const count = Number(/transactions actually processed: (\d+)/.exec(stdout)?.[1])
  if (!Number.isFinite(tps / count)) throw new Error(`pgbench said no rate: ${stdout}`)
  return { count, seconds: count / tps, latenciesMs: [] }
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
