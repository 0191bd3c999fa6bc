import { isObject, isSame, type Json, namesOf, objectAt, textsOf } from './documents.ts'
import type { Finding } from './rules.ts'
import { inner, report, type Schemas, stepInto } from './schemaPair.ts'

/** The comparison of objects and arrays: fields, whether they are required, other fields, and items. */

export const compareFields = (schemas: Schemas): readonly Finding[] => [
  ...compareProperties(schemas),
  ...compareOthers(schemas),
  ...compareInner(schemas, 'items', '*'),
  ...compareInner(schemas, 'propertyNames', 'names of its members'),
]

const compareProperties = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [objectAt(schemas.was['properties']), objectAt(schemas.now['properties'])]
  return namesOf(was, now).flatMap(name => {
    const path = stepInto(schemas.path, name)
    const finding = report({ ...schemas, path })
    const required = requiredIn(schemas, name)
    if (!(name in now)) return [finding('field-removed', `The field ${name} is removed.`)]
    if (!(name in was))
      return schemas.direction === 'request' && required.now
        ? [finding('required-field-added', `The required field ${name} is added.`)]
        : [finding('field-added', `The field ${name} is added.`)]
    return [...compareRequired(schemas, name), ...inner(schemas, name, was[name], now[name])]
  })
}

const requiredIn = ({ was, now }: Schemas, name: string) => ({
  was: textsOf(was['required']).includes(name),
  now: textsOf(now['required']).includes(name),
})

const compareRequired = (schemas: Schemas, name: string): readonly Finding[] => {
  const { was, now } = requiredIn(schemas, name)
  if (was === now) return []
  const finding = report({ ...schemas, path: stepInto(schemas.path, name) })
  const isRequest = schemas.direction === 'request'
  if (now)
    return [
      finding(isRequest ? 'field-required' : 'field-always-sent', `The field ${name} was optional and is required.`),
    ]
  return [
    finding(isRequest ? 'field-optional' : 'field-no-longer-sent', `The field ${name} was required and is optional.`),
  ]
}

/** Absent and empty schemas permit everything. */
const othersIn = (value: Json | undefined): Json => {
  const isAnything = value === undefined || (isObject(value) && Object.keys(value).length === 0)
  return isAnything ? true : value
}

const compareOthers = (schemas: Schemas): readonly Finding[] => {
  const [was, now] = [othersIn(schemas.was['additionalProperties']), othersIn(schemas.now['additionalProperties'])]
  const isAccepting = schemas.direction === 'request'
  const finding = report(schemas)
  if (isSame(was, now)) return []
  if (isObject(was) && isObject(now)) return inner(schemas, 'other members', was, now)
  if (now === false || (isObject(now) && was === true && isAccepting))
    return [finding('closed-to-fields', 'Undeclared fields were permitted.')]
  if (isObject(was) && !isAccepting) return [finding('type-changed', 'Undeclared fields had a schema.')]
  return [finding('opened-to-fields', 'Undeclared fields are permitted.')]
}

const compareInner = (schemas: Schemas, keyword: 'items' | 'propertyNames', step: string): readonly Finding[] =>
  keyword in schemas.was || keyword in schemas.now
    ? inner(schemas, step, schemas.was[keyword], schemas.now[keyword])
    : []
