import { isSame, type Json, type JsonObject, textOf } from './documents.ts'
import type { Finding, Rule } from './rules.ts'
import { report, type Schemas } from './schemaPair.ts'

/** Members for human readers, which promise nothing. */
const EDITORIAL = new Set([
  'title',
  'description',
  'summary',
  'example',
  'examples',
  'externalDocs',
  '$comment',
  '$id',
  '$schema',
])
export const isEditorial = (name: string): boolean => EDITORIAL.has(name)

type Compare = (schemas: Schemas, name: string) => readonly Finding[]

const oneFinding = (schemas: Schemas, name: string, rule: Rule): readonly Finding[] => {
  const [was, now] = [schemas.was[name] ?? 'absent', schemas.now[name] ?? 'absent']
  return [report(schemas)(rule, `${name} was ${textOf(was)} and is ${textOf(now)}.`)]
}

// --- Types -----------------------------------------------------------------------------------------------------------

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

/** Every integer is a number; a schema without a type permits all. */
const typesIn = ({ type }: JsonObject): readonly Json[] => {
  const types = type === undefined ? TYPES : [type].flat()
  return types.includes('number') ? [...types, 'integer'] : types
}

const compareType: Compare = (schemas, name) => {
  const [was, now] = [typesIn(schemas.was), typesIn(schemas.now)]
  const isAccepting = schemas.direction === 'request'
  const isLost = was.some(type => !now.includes(type))
  const isGained = now.some(type => !was.includes(type))
  if (isAccepting ? isLost : isGained) return oneFinding(schemas, name, 'type-changed')
  if (isGained) return oneFinding(schemas, name, 'type-added')
  return isLost ? oneFinding(schemas, name, 'type-narrowed') : []
}

// --- Values ----------------------------------------------------------------------------------------------------------

const valuesIn = ({ enum: values, const: value }: JsonObject): readonly Json[] | undefined =>
  values === undefined ? (value === undefined ? undefined : [value]) : (values as readonly Json[])

const isIn = (values: readonly Json[], value: Json): boolean => values.some(each => isSame(each, value))

const compareValues: Compare = schemas => {
  const [was, now] = [valuesIn(schemas.was), valuesIn(schemas.now)]
  const finding = report(schemas)
  const isAccepting = schemas.direction === 'request'
  if (was === undefined)
    return [finding(isAccepting ? 'enum-closed' : 'constraint-added', `Only ${textOf([...(now ?? [])])} is permitted.`)]
  if (now === undefined)
    return [finding(isAccepting ? 'constraint-removed' : 'enum-opened', `Only ${textOf([...was])} was permitted.`)]
  const added: Rule = schemas.direction === 'event' ? 'event-value-added' : 'enum-value-added'
  return [
    ...was.filter(each => !isIn(now, each)).map(each => finding('enum-value-removed', `${textOf(each)} is removed.`)),
    ...now.filter(each => !isIn(was, each)).map(each => finding(added, `${textOf(each)} is added.`)),
  ]
}

// --- Bounds and forms ------------------------------------------------------------------------------------------------

/** Negated lower bounds grow narrower as upper bounds do: with the smaller value. */
const compareBound =
  (sign: 1 | -1): Compare =>
  (schemas, name) => {
    const at = (value: Json | undefined): number => (typeof value === 'number' ? sign * value : Infinity)
    const [was, now] = [at(schemas.was[name]), at(schemas.now[name])]
    if (was === now) return []
    const isNarrower = now < was
    if (schemas.direction === 'request')
      return oneFinding(schemas, name, isNarrower ? 'bound-narrowed' : 'bound-widened')
    return oneFinding(schemas, name, isNarrower ? 'bound-tightened' : 'bound-exceeded')
  }

/** A form that was required: no comparison of two patterns is attempted. */
const compareForm =
  (changed: Rule): Compare =>
  (schemas, name) => {
    const isAccepting = schemas.direction === 'request'
    if (!(name in schemas.was)) return oneFinding(schemas, name, isAccepting ? changed : 'constraint-added')
    if (!(name in schemas.now)) return oneFinding(schemas, name, isAccepting ? 'constraint-removed' : changed)
    return oneFinding(schemas, name, changed)
  }

const [upper, lower] = [compareBound(1), compareBound(-1)]

const KEYWORDS: Readonly<Record<string, Compare>> = {
  type: compareType,
  enum: compareValues,
  // A schema with both keywords is compared once.
  const: (schemas, name) => ('enum' in schemas.was || 'enum' in schemas.now ? [] : compareValues(schemas, name)),
  maximum: upper,
  exclusiveMaximum: upper,
  maxLength: upper,
  maxItems: upper,
  maxProperties: upper,
  minimum: lower,
  exclusiveMinimum: lower,
  minLength: lower,
  minItems: lower,
  minProperties: lower,
  pattern: compareForm('pattern-changed'),
  format: compareForm('format-changed'),
  multipleOf: compareForm('bound-narrowed'),
  uniqueItems: compareForm('bound-narrowed'),
  default: (schemas, name) => (schemas.direction === 'request' ? oneFinding(schemas, name, 'default-changed') : []),
  deprecated: (schemas, name) => oneFinding(schemas, name, 'deprecated'),
}

/** The findings about one keyword; an unknown one that differs is a finding too. */
export const compareKeyword = (name: string, schemas: Schemas): readonly Finding[] => {
  if (isSame(schemas.was[name], schemas.now[name])) return []
  return KEYWORDS[name]?.(schemas, name) ?? oneFinding(schemas, name, 'unknown-change')
}
