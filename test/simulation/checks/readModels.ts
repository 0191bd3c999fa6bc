import { projections } from '../../../projections/index.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { Engine } from '../postgres.ts'
import { rowOf } from './folding.ts'
import { violation, type Violation } from './violation.ts'

/** The read models compared with the log: every row is the fold of its stream, and every stream has its row. */

const asText = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner))

const columnsAsText = (row: object, columns: readonly string[]): string =>
  asText(columns.map(column => (row as Record<string, unknown>)[column] ?? null))

export const checkReadModels = async (log: SimulatedLog, engine: Engine, settledAt: string): Promise<Violation[]> => {
  const violations: Violation[] = []
  const streams = [...new Set(log.events.map(({ stream }) => stream))]
  for (const projection of Object.values(projections)) {
    const { name, category, columns } = projection
    const names = Object.keys(columns)
    const rows = await engine.query<{ id: string }>(`select ${names.join(', ')} from ${name}`)
    const byId = new Map(rows.map(row => [row.id, row]))
    for (const stream of streams.filter(one => partsOf(one).category === category)) {
      const { id } = partsOf(stream)
      const expected = rowOf(log, stream, projection)
      const row = byId.get(id)
      byId.delete(id)
      const isRecent = (log.stream(stream).at(-1)?.storedAt ?? '') >= settledAt
      if (expected === undefined || isRecent) continue
      if (row === undefined)
        violations.push(violation('a read model is the fold of the streams', `${name} lacks ${id}`))
      else if (columnsAsText(row, names) !== columnsAsText(expected, names))
        violations.push(
          violation(
            'a read model is the fold of the streams',
            `${name}: ${columnsAsText(row, names)}, the log ${columnsAsText(expected, names)}`,
          ),
        )
    }
    for (const id of byId.keys())
      violations.push(violation('a read model is the fold of the streams', `${name} has ${id}, which has no stream`))
  }
  return violations
}
