import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/ports.ts'
import { rebuildById, type RebuildRow } from '../../../src/feeds/rebuild/requests.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { commandLine, interruptible } from '../interruption.ts'
import { counted, print, printJson, printNotice } from '../print.ts'
import { progressFor, type StartProgress } from '../progress.ts'

const POLL_MS = 250
/** A process of the service takes a request up within seconds. */
const PENDING_NOTICE_MS = 10_000

const sentencesOf = (row: RebuildRow): readonly string[] => {
  const { id, kind, projection, state, difference, parity, error } = row
  const compared = (parity?.tables ?? []).map(
    ({ table, rows, tenants }) =>
      `  ${table}: ${counted(rows, 'row')} of ${counted(tenants, 'tenant')} compared at position ${parity?.position}`,
  )
  const name = `${kind} ${projection} (${id})`
  if (difference !== null) {
    const { table, key, column, live, rebuilt, rows } = difference
    const first = `  first difference: ${table} ${key ?? ''} ${column ?? ''}: live ${live ?? 'none'}, rebuilt ${rebuilt ?? 'none'}; ${counted(rows, 'row')} in all`
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

const untilEnded = async (
  database: Database,
  id: string,
  startProgress: StartProgress,
  signal: AbortSignal,
): Promise<RebuildRow> => {
  const { kind, projection, done } = await rowOf(database, id)
  const progress = startProgress(`${kind} ${projection}`, 'events', { done: Number(done) })
  const noticeAtMs = performance.now() + PENDING_NOTICE_MS
  let isNoticed = false
  try {
    for (;;) {
      const row = await rowOf(database, id)
      progress.update(Number(row.done), Number(row.total ?? 0) || undefined)
      if (row.state !== 'pending' && row.state !== 'running') return row
      if (row.state === 'pending' && !isNoticed && performance.now() > noticeAtMs) {
        isNoticed = true
        printNotice('It waits for another rebuild, or for a process with the role projector.')
      }
      await sleep(POLL_MS, undefined, { signal })
    }
  } finally {
    progress.end()
  }
}

/** After Ctrl-C all are requested, and go on in the service: the printed command follows them, and requests none. */
export const requestAndFollow = async (
  database: Database,
  requests: readonly (() => Promise<string>)[],
  json: boolean,
): Promise<void> => {
  const ids: string[] = []
  const untilAllEnded = async (signal: AbortSignal): Promise<RebuildRow[]> => {
    for (const request of requests) ids.push(await request())
    const rows: RebuildRow[] = []
    for (const id of ids) rows.push(await untilEnded(database, id, progressFor({ json }), signal))
    return rows
  }
  const rows = await interruptible(untilAllEnded, () => commandLine(['projections', 'follow', ...ids]))
  if (rows === undefined) return
  if (json) printJson({ rebuilds: rows })
  else for (const line of rows.flatMap(sentencesOf)) print(line)
  const bad = rows.filter(row => !isGood(row))
  if (bad.length === 0) return
  printNotice(`Not as wanted: ${bad.map(({ projection }) => projection).join(', ')}.`)
  process.exitCode = 1
}
