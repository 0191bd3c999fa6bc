import { type Finding, isBreaking, RULES } from './rules.ts'

export type Compared = { readonly version: string; readonly findings: readonly Finding[] }

export type Difference = Omit<Finding, 'where'> & {
  readonly effect: string
  readonly why: string
  readonly where: string[]
}

/** Findings that are the same difference at several places become one. */
export const differencesOf = (findings: readonly Finding[]): readonly Difference[] => {
  const byDifference = Map.groupBy(findings, ({ rule, path, change }) => JSON.stringify([rule, path, change]))
  return [...byDifference.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return []
    const where = [...new Set([first, ...others].map(finding => finding.where))]
    return [{ ...first, ...RULES[first.rule], where }]
  })
}

const PLACES_SHOWN_MAX = 3

const placesOf = ({ where, path }: Difference): string => {
  const shown = where.slice(0, PLACES_SHOWN_MAX).join('; ')
  const more = where.length > PLACES_SHOWN_MAX ? `; and ${where.length - PLACES_SHOWN_MAX} more` : ''
  return `${path === '' ? '' : `${path} in `}${shown}${more}`
}

const linesOf = (difference: Difference): readonly string[] => [
  `  ${difference.effect.toUpperCase()} ${difference.rule}: ${placesOf(difference)}`,
  `    ${difference.change} ${difference.why}`,
]

const countOf = (count: number, effect: string): string => `${count} ${effect} difference${count === 1 ? '' : 's'}`

const REMEDY =
  'A breaking change needs a new version: leave the released shape to a translator in src/http/translation, give the new shape a ' +
  'date of its own with a migration guide (CONTRIBUTING.md, "An API version"), then run npm run contract -- release <date>.'

/** The differences of one version in words, breaking ones first. */
export const reportOf = ({ version, findings }: Compared): string => {
  const differences = differencesOf(findings).toSorted((one, other) => one.effect.localeCompare(other.effect))
  const breaking = differences.filter(({ effect }) => effect === 'breaking')
  const heading = `${version}: ${countOf(breaking.length, 'breaking')}, ${countOf(differences.length - breaking.length, 'compatible')}`
  return [heading, ...differences.flatMap(linesOf), ...(breaking.length > 0 ? [REMEDY] : [])].join('\n')
}

export const isBroken = ({ findings }: Compared): boolean => findings.some(isBreaking)
