import { books, journals, projections } from '../../../projections/index.ts'
import { checkpointPositions } from '../../../src/feeds/checkpoints.ts'
import { newestRebuilds, previousProjections, type RebuildRow } from '../../../src/feeds/rebuild/requests.ts'
import type { Database } from '../../../src/ports.ts'
import { print, printJson } from '../print.ts'
import { aligned } from '../table.ts'
import { withOperatedDatabase } from './rebuild.ts'

/** `projections list`: the read models, their positions, and their newest rebuilds. */

type Listed = {
  readonly projection: string
  readonly checkpoint: string
  /** Null before the first event. */
  readonly position: bigint | null
  /** The position of the tables that a roll-back would continue from; null if none are kept. */
  readonly previous_position: bigint | null
  readonly rebuild: RebuildRow | null
}

const lineOf = ({ id, kind, state, done, total, rate, error }: RebuildRow): string => {
  const events = state === 'running' ? `, ${done} of about ${total ?? done} events, ${rate ?? 0}/s` : ''
  return `${id} ${kind} ${state}${events}${error === null ? '' : `. ${error}`}`
}

const read = async ({ sql }: Database): Promise<readonly Listed[]> => {
  const positions = await checkpointPositions(sql)
  const previous = await previousProjections(sql)
  const rebuilds = new Map((await newestRebuilds(sql)).map(row => [row.projection, row]))
  return Object.entries({ ...projections, ...journals, books }).map(([projection, { name }]) => ({
    projection,
    checkpoint: name,
    position: positions.get(name) ?? null,
    previous_position: previous.get(projection) ?? null,
    rebuild: rebuilds.get(projection) ?? null,
  }))
}

export const list = ({ json }: { readonly json: boolean }): Promise<void> =>
  withOperatedDatabase(async ({ database }) => {
    const listed = await read(database)
    if (json) return printJson({ projections: listed })
    const rows = listed.map(({ projection, checkpoint, position, previous_position, rebuild }) => [
      projection,
      checkpoint,
      String(position ?? 'none'),
      String(previous_position ?? '-'),
      rebuild === null ? '-' : lineOf(rebuild),
    ])
    for (const line of aligned([['NAME', 'CHECKPOINT', 'POSITION', 'KEPT', 'NEWEST REBUILD'], ...rows])) print(line)
  })
