import type { Database } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { type Check, finding, ok } from './finding.ts'

/** The check of feeds that have failed. */

type Row = { readonly name: string; readonly error: string; readonly at: string }

const CHECK = 'failed feeds'

/** Errors of feeds with their messages. The public /readyz says only which feeds have failed. */
export const checkErrors = async ({ sql }: Database): Promise<Check> => {
  const isCreated = await relationExists(sql, 'feed_errors')
  const rows = isCreated ? await sql<Row>('select name, error, at from feed_errors order by name') : []
  if (rows.length === 0) return ok(CHECK, 'none')
  const detail = rows.map(({ name, error, at }) => `${name}, since ${at}: ${error}`).join('; ')
  return finding(CHECK, detail, 'Repair the named cause; the feed then continues by itself.')
}
