import type { Sql } from '../ports.ts'

/** Whether tables and indexes exist, which a database without a first start of the service lacks. */

/** `name`: of a table or an index; without a schema it is looked for in the search path. */
export const relationExists = async (sql: Sql, name: string): Promise<boolean> => {
  const [row] = await sql<{ exists: boolean }>('select to_regclass($1) is not null as exists', [name])
  return row?.exists === true
}
