import { type Json, type JsonObject, textOf } from './documents.ts'
import { type Finding, isBreaking } from './rules.ts'
import { report, type Schemas } from './schemaPair.ts'

/** The comparison of anyOf and oneOf: each released alternative is compared with the one that continues it. */

const alternativesIn = ({ anyOf, oneOf }: JsonObject): readonly Json[] | undefined =>
  (anyOf ?? oneOf) as readonly Json[] | undefined

export const compareAlternatives = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [alternativesIn(schemas.was), alternativesIn(schemas.now)]
  if (was === undefined && now === undefined) return []
  return comparePaired(schemas, was ?? [schemas.was], now ?? [schemas.now])
}

const compareOne = (schemas: Schemas, was: Json, now: Json): readonly Finding[] =>
  schemas.compare({ ...schemas, was, now })

/** Pairs that nothing breaks come first; what is left is paired in order, so that the difference inside is named. */
const comparePaired = (schemas: Schemas, was: readonly Json[], now: readonly Json[]): readonly Finding[] => {
  const left = [...now]
  const findings: Finding[] = []
  const unpaired = was.filter(released => {
    const index = left.findIndex(alternative => !compareOne(schemas, released, alternative).some(isBreaking))
    if (index < 0) return true
    const [alternative = null] = left.splice(index, 1)
    findings.push(...compareOne(schemas, released, alternative))
    return false
  })
  const changed = unpaired.slice(0, left.length)
  findings.push(...changed.flatMap((released, index) => compareOne(schemas, released, left[index] ?? null)))
  const removed = unpaired.slice(changed.length)
  const added = left.slice(changed.length)
  return [
    ...findings,
    ...removed.map(alternative => lost(schemas, alternative)),
    ...added.map(alternative => gained(schemas, alternative)),
  ]
}

const lost = (schemas: Schemas, alternative: Json): Finding =>
  report(schemas)(
    schemas.direction === 'request' ? 'alternative-removed' : 'alternative-unused',
    `The alternative ${textOf(alternative)} is removed.`,
  )

const gained = (schemas: Schemas, alternative: Json): Finding =>
  report(schemas)(
    schemas.direction === 'request' ? 'alternative-accepted' : 'alternative-added',
    `The alternative ${textOf(alternative)} is added.`,
  )
