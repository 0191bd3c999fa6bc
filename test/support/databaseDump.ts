import type { Database } from '../../src/ports.ts'

/** Every row of every table as text, as in a dump; the embedded event store keeps its log there too. */
export const everyRow = async ({ sql }: Pick<Database, 'sql'>): Promise<string> => {
  const tables = await sql<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  const texts: string[] = []
  for (const { name } of tables)
    for (const { row } of await sql<{ row: string }>(`select t::text as row from ${name} t`)) {
      texts.push(row)
      // bytea is printed in hex, so its bytes are searched too.
      for (const [, hex] of row.matchAll(/\\x([0-9a-f]+)/g))
        texts.push(Buffer.from(hex ?? '', 'hex').toString('latin1'))
    }
  return texts.join('\n')
}
