import { chown, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { eventually } from './eventually.ts'
import type { Certified } from './selfSigned.ts'

/** TLS of a running Postgres of the tests, which other files may use without it. */
export type SecurePostgres = {
  /** Resolves when new connections get this certificate; undefined: when there is no TLS. */
  readonly use: (certified: Certified | undefined) => Promise<void>
  readonly restore: () => Promise<void>
}

const OWNER_ONLY = 0o600

export const securePostgres = async (address: string): Promise<SecurePostgres> => {
  /** The one value that the last statement returns. */
  const run = async (...statements: readonly string[]): Promise<string> => {
    const client = new Client({ connectionString: address })
    await client.connect()
    let value = ''
    for (const statement of statements) {
      const { rows } = await client.query<string[]>({ text: statement, rowMode: 'array' })
      value = rows[0]?.[0] ?? ''
    }
    await client.end()
    return value
  }
  const folder = await run('show data_directory')
  const write = async (name: string, content: string): Promise<void> => {
    const { uid, gid } = await stat(folder)
    await writeFile(join(folder, name), content, { mode: OWNER_ONLY })
    if (process.getuid?.() === 0) await chown(join(folder, name), uid, gid)
  }
  /** Of a new connection: when the server that accepted it had read its settings and certificates. */
  const loadedAt = (): Promise<string> => run('select pg_conf_load_time()::text')
  const use: SecurePostgres['use'] = async certified => {
    if (certified !== undefined) {
      await write('server.crt', certified.cert)
      await write('server.key', certified.key)
    }
    const before = await loadedAt()
    await run(`alter system set ssl = ${certified === undefined ? 'off' : 'on'}`, 'select pg_reload_conf()')
    await eventually(async () => (await loadedAt()) !== before)
  }
  return { use, restore: () => use(undefined) }
}
