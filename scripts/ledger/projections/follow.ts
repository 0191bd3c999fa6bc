import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/ports.ts'
import { rebuildById, type RebuildRow } from '../../../src/feeds/rebuild/requests.ts'
import { StartupError } from '../../../src/startupError.ts'
import { print, printJson, printNotice } from '../print.ts'
import { startRebuildProgress } from './rebuildProgress.ts'

/** Waits for rebuilds that a process of the service executes, and shows how they end. */

const POLL_MS = 250
/** A process of the service takes a request up within seconds. */
const PENDING_NOTICE_MS = 10_000
const INTERRUPTED_EXIT_CODE = 130

const isUnderWay = ({ state }: RebuildRow): boolean => state === 'pending' || state === 'running'

const sentencesOf = (row: RebuildRow): readonly string[] => {
  const { id, kind, projection, state, difference, parity, error } = row
  const compared = (parity?.tables ?? []).map(
    ({ table, rows, tenants }) =>
      `  ${table}: ${rows} rows of ${tenants} tenants compared at position ${parity?.position}`,
  )
  const name = `${kind} ${projection} (${id})`
  if (difference !== null) {
    const { table, key, column, live, rebuilt, rows } = difference
    const first = `  first difference: ${table} ${key ?? ''} ${column ?? ''}: live ${live ?? 'none'}, rebuilt ${rebuilt ?? 'none'}; ${rows} rows differ`
    const next =
      state === 'refused'
        ? [
            '  The live tables stay. If the rebuilt rows are right:',
            `  npm run -s ledger -- projections rebuild ${projection} --accept-differences --reason "…"`,
          ]
        : []
    return [`${name}: ${state}; the rows differ`, ...compared, first, ...next]
  }
  return [`${name}: ${state}${error === null ? '' : `. ${error}`}`, ...compared]
}

/** Whether the rebuild did what was asked for: a verification also found nothing. */
const isGood = ({ state, kind, difference }: RebuildRow): boolean =>
  state === 'succeeded' && (kind !== 'verify' || difference === null)

const rowOf = async (database: Database, id: string): Promise<RebuildRow> => {
  const row = await rebuildById(database.sql, id)
  if (row === undefined) throw new StartupError(`There is no rebuild ${id}. See npm run ledger -- projections list.`)
  return row
}

const untilEnded = async (database: Database, id: string): Promise<RebuildRow> => {
  const progress = startRebuildProgress()
  const beganAtMs = performance.now()
  let isNoticed = false
  try {
    for (;;) {
      const row = await rowOf(database, id)
      progress.show(row)
      if (!isUnderWay(row)) return row
      if (row.state === 'pending' && !isNoticed && performance.now() - beganAtMs > PENDING_NOTICE_MS) {
        isNoticed = true
        printNotice('It waits for another rebuild, or for a process with the role projector.')
      }
      await sleep(POLL_MS)
    }
  } finally {
    progress.end()
  }
}

/** After Ctrl-C the rebuilds go on in the service. The printed command follows those that had been requested, and requests none. */
const explainInterruption = (ids: readonly string[]): (() => void) => {
  const interrupted = (): void => {
    printNotice(`\nIt goes on in the service. To follow it: npm run -s ledger -- projections follow ${ids.join(' ')}`)
    printNotice(`To end it: npm run -s ledger -- projections cancel ${ids.join(' ')}`)
    process.exit(INTERRUPTED_EXIT_CODE)
  }
  process.once('SIGINT', interrupted)
  return () => process.off('SIGINT', interrupted)
}

/** Prints how each ended. Throws a StartupError if one did not do what was asked for. */
export const follow = async (database: Database, ids: readonly string[], json: boolean): Promise<void> => {
  const forget = explainInterruption(ids)
  const rows: RebuildRow[] = []
  for (const id of ids) rows.push(await untilEnded(database, id))
  forget()
  if (json) printJson({ rebuilds: rows })
  else for (const line of rows.flatMap(sentencesOf)) print(line)
  const bad = rows.filter(row => !isGood(row))
  if (bad.length > 0) throw new StartupError(`Not as wanted: ${bad.map(({ projection }) => projection).join(', ')}.`)
}
