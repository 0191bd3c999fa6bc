import { books, journals, projections } from '../../../projections/index.ts'
import { checkpointPositions } from '../../../src/feeds/checkpoints.ts'
import { newestRebuilds, previousProjections, type RebuildRow } from '../../../src/feeds/rebuild/requests.ts'
import type { Database } from '../../../src/ports.ts'
import { printJson } from '../print.ts'
import { printTable } from '../table.ts'
import { withStores } from '../stores.ts'

const lineOf = ({ id, kind, state, done, total, rate, error }: RebuildRow): string => {
  const events = state === 'running' ? `, ${done} of about ${total ?? done} events, ${rate ?? 0}/s` : ''
  return `${id} ${kind} ${state}${events}${error === null ? '' : `. ${error}`}`
}

const read = async ({ sql }: Database) => {
  const positions = await checkpointPositions(sql)
  const previous = await previousProjections(sql)
  const rebuilds = new Map((await newestRebuilds(sql)).map(row => [row.projection, row]))
  return Object.entries({ ...projections, ...journals, books }).map(([projection, { name }]) => ({
    projection,
    checkpoint: name,
    /** Null before the first event. */
    position: positions.get(name) ?? null,
    /** The position of the tables that a roll-back would continue from; null if none are kept. */
    previous_position: previous.get(projection) ?? null,
    rebuild: rebuilds.get(projection) ?? null,
  }))
}

export const list = ({ json }: { readonly json: boolean }): Promise<void> =>
  withStores('projections', async ({ database }) => {
    const listed = await read(database)
    if (json) return printJson({ projections: listed })
    const rows = listed.map(({ projection, checkpoint, position, previous_position, rebuild }) => {
      const newest = rebuild === null ? '-' : lineOf(rebuild)
      return [projection, checkpoint, position ?? 'none', previous_position ?? '-', newest]
    })
    printTable([['NAME', 'CHECKPOINT', 'POSITION', 'KEPT', 'NEWEST REBUILD'], ...rows])
  })
