import type { Database } from '../../../src/ports.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of feeds that have failed. */

type Row = { readonly name: string; readonly error: string; readonly at: string }

const CHECK = 'feeds that do not go on'

/** Errors of feeds with their messages. The public /readyz says only which feeds have failed. */
export const checkErrors = async ({ sql }: Database): Promise<Check> => {
  const [table] = await sql<{ there: boolean }>("select to_regclass('feed_errors') is not null as there")
  const rows = table?.there ? await sql<Row>('select name, error, at from feed_errors order by name') : []
  if (rows.length === 0) return ok(CHECK, 'none')
  const detail = rows.map(({ name, error, at }) => `${name}, since ${at}: ${error}`).join('; ')
  return finding(CHECK, detail, 'Heal what it names; the feed goes on by itself.')
}
